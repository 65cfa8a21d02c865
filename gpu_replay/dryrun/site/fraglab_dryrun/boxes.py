"""torchvision.ops.boxes: how many boxes its NMS keeps, which only a kernel would know. Many boxes it takes class
after class; they are held to be of all classes that there can be, as many of each, or else of one."""
import functools
import threading

from . import counts


class Boxes:
    def __init__(self, counts):
        self.counts = counts

    def wrap(self, module):
        for name, wrapped in (("nms", self.keeping), ("batched_nms", self.keeping), ("_batched_nms_vanilla", self.taking_classes)):
            function = getattr(module, name, None)
            if function is not None:
                setattr(module, name, wrapped(function))

    def keeping(self, function):
        @functools.wraps(function)
        def kept(boxes, *arguments, **named):
            if not self.counts.is_plain(boxes):
                return function(boxes, *arguments, **named)
            return self.counts.around(function, lambda: self.counts.choose(boxes.shape[0]), (boxes, *arguments), named)

        return kept

    def taking_classes(self, function):
        @functools.wraps(function)
        def taken(boxes, scores, classes, *arguments):
            choices = self.counts.watch.choices
            thread = threading.get_ident()
            if not self.counts.is_plain(classes) or thread not in choices:
                return function(boxes, scores, classes, *arguments)
            choice = choices.pop(thread)  # of all boxes: here each class has its own
            if counts.on_host(self.counts.torch, classes) is None:
                self.counts.parts = counts.evenly(len(classes), counts.different(classes) or 1)
            try:
                return function(boxes, scores, classes, *arguments)
            finally:
                self.counts.parts = []
                choices[thread] = choice

        return taken
