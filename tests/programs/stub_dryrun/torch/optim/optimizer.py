hooks = []
pre_hooks = []


class Handle:
    def __init__(self, owner, hook):
        self.owner, self.hook = owner, hook
        owner.append(hook)

    def remove(self):
        self.owner.remove(self.hook)


def register_optimizer_step_pre_hook(hook):
    return Handle(pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    return Handle(hooks, hook)


class Optimizer:
    def step(self, work=lambda: None):
        for hook in list(pre_hooks):
            hook(self, (), {})
        work()
        for hook in list(hooks):
            hook(self, (), {})
