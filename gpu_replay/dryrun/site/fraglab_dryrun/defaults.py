"""What is done where a zero would be wrong and the meaning is known: --no-defaults leaves it out."""
import functools
import linecache
import os


def no_validation(torch, run):
    """torch.distributions checks its arguments by values on the device."""
    distributions = getattr(torch, "distributions", None)
    if distributions is not None:
        distributions.Distribution.set_default_validate_args(False)


def all_is_true(torch, run):
    """`if not mask.all(): raise ...` guards against bad input, so all() of unknown values is True; so is isfinite() of a loss."""

    def wrap(owner, name):
        function = getattr(owner, name)

        @functools.wraps(function)
        def marked(*arguments, **named):
            result = function(*arguments, **named)
            if getattr(result, "is_cuda", False) and result.dim() == 0 and not torch.compiler.is_compiling():
                result._fraglab_value = True
            return result

        setattr(owner, name, marked)

    if hasattr(torch, "compiler") and hasattr(torch.compiler, "is_compiling"):
        for owner in (torch, torch.Tensor):
            for name in ("all", "isfinite", "isclose"):
                wrap(owner, name)


def valid_input(torch, run):
    """torch.normal checks that no deviation is negative; torch.multinomial that each probability is
    one (true), then that their sum is 0 (false)."""
    checks = run.watch_of_values.answer_checks
    checks(torch, "normal", [True])
    for owner in (torch, torch.Tensor):
        checks(owner, "multinomial", [True, False])

    def of_weights(*arguments, **named):
        """torch.cov: each kind of weight is positive, so is their sum, and degrees of freedom are left."""
        given = [*arguments[2:], named.get("fweights"), named.get("aweights")]
        count = sum(weights is not None for weights in given)
        return [True] * (count + (count > 0)) + [False]

    for owner in (torch, torch.Tensor):
        checks(owner, "cov", of_weights)
        likely(torch, run, owner)


def likely(torch, run, owner):
    """torch.multinomial on the host, of probabilities that the device would have computed: all are alike."""
    function = getattr(owner, "multinomial", None)
    if function is None:
        return

    @functools.wraps(function)
    def multinomial(*arguments, **named):
        given = arguments[0] if arguments else named.get("input")
        if isinstance(given, torch.Tensor) and not given.is_cuda and given.device.type == "cpu" and given.dim() > 0 and \
                torch.cuda.is_initialized() and given.is_floating_point() and not given.any():
            run.note_sentence("torch.multinomial on the host: all probabilities are 0; they are taken as alike")
            arguments, named = (torch.ones_like(given), *arguments[1:]), {k: v for k, v in named.items() if k != "input"}
        return function(*arguments, **named)

    owner.multinomial = multinomial


def repeats_of_one(torch, run):
    """The length of repeat_interleave is a sum on the device: each is taken once if nothing of the
    counts is known."""

    def repeated(arguments, named):
        """How many elements or slices one count is for."""
        tensor = arguments[0] if arguments else named.get("self", named.get("input"))
        if not isinstance(tensor, torch.Tensor) or len(arguments) + len(named) == 1:
            return 1  # the counts alone
        dim = arguments[2] if len(arguments) > 2 else named.get("dim")
        return tensor.numel() if dim is None else tensor.shape[dim]

    def wrap(owner, name):
        function = getattr(owner, name, None)
        if function is None:
            return

        @functools.wraps(function)
        def repeat(*arguments, **named):
            counts = named.get("repeats")
            if counts is None and arguments:
                counts = arguments[1] if len(arguments) > 1 else arguments[0]
            is_unknown = isinstance(counts, torch.Tensor) and counts.is_cuda and counts.dim() <= 1 and \
                named.get("output_size") is None and len(arguments) < 5 and counts.numel() > 0
            if is_unknown:
                length = repeated(arguments, named) if counts.numel() == 1 else counts.numel()
                total = sum(counts.reshape(-1).cpu().tolist()) * (length if counts.numel() == 1 else 1)
                named["output_size"] = total if total > 0 else length
                if total <= 0:
                    run.note_sentence("repeat_interleave: the counts are on the device; each is taken as 1")
            return function(*arguments, **named)

        setattr(owner, name, repeat)

    wrap(torch.Tensor, "repeat_interleave")
    wrap(torch, "repeat_interleave")


class Generation:
    """generate() of transformers ends when a sequence has its maximum length, which the host knows;
    that all have met an end token only the GPU would know."""

    def __init__(self, run):
        self.run = run
        self.is_done = False
        run.watch_of_values.lengths.append(self.beams)

    def watch_length(self, module):
        """transformers.generation.stopping_criteria"""
        criteria = getattr(module, "MaxLengthCriteria", None)
        if criteria is None:
            return
        call = criteria.__call__

        @functools.wraps(call)
        def check(self_criteria, input_ids, *arguments, **named):
            if input_ids.shape[-1] >= self_criteria.max_length:
                self.is_done = True
            return call(self_criteria, input_ids, *arguments, **named)

        criteria.__call__ = check

    def watch_loop(self, module):
        """transformers.generation.utils"""
        mixin = getattr(module, "GenerationMixin", None)
        for name in ("_has_unfinished_sequences", "_beam_search_has_unfinished_sequences"):
            function = getattr(mixin, name, None)
            if function is not None:
                setattr(mixin, name, self.until_done(function))
        generate = getattr(mixin, "generate", None)
        if generate is not None:
            mixin.generate = self.fresh(generate)

    def until_done(self, function):
        @functools.wraps(function)
        def has_unfinished(*arguments, **named):
            return not self.is_done

        return has_unfinished

    def fresh(self, generate):
        @functools.wraps(generate)
        def generate_afresh(*arguments, **named):
            outer, self.is_done = self.is_done, False  # an assistant generates inside
            try:
                return generate(*arguments, **named)
            finally:
                self.is_done = outer

        return generate_afresh

    @staticmethod
    def beams(frame):
        """How many tokens a beam search has made, by the line that reads it: on the device it counts indices
        that are set."""
        path = frame.f_code.co_filename
        if frame.f_code.co_name != "_beam_search" or not path.endswith(os.path.join("generation", "utils.py")):
            return None
        line, names = linecache.getline(path, frame.f_lineno), frame.f_locals  # which keeps what they name, so of no other frame
        if "output_length" in line:
            return names.get("cur_len")
        if "max_generated_length]" in line and "cur_len" in names and "decoder_prompt_len" in names:
            return names["cur_len"] - names["decoder_prompt_len"]
        return None


def accurate_steps(run):
    """torchdiffeq tries a shorter step where the error of one was too large: it was not."""
    solver = os.path.join("torchdiffeq", "_impl", "rk_common.py")

    def is_accepted(frame):
        path = frame.f_code.co_filename
        if not path.endswith(solver) or "if accept_step" not in linecache.getline(path, frame.f_lineno):
            return None
        run.note_sentence("torchdiffeq: the first step that is tried is taken to be accurate enough; a GPU may need more of them")
        return True

    run.watch_of_values.lengths.append(is_accepted)


def install(torch, run, after_import):
    after_import.call("torch.distributions", lambda _module: no_validation(torch, run))
    all_is_true(torch, run)
    valid_input(torch, run)
    repeats_of_one(torch, run)
    accurate_steps(run)
    generation = Generation(run)
    after_import.call("transformers.generation.stopping_criteria", generation.watch_length)
    after_import.call("transformers.generation.utils", generation.watch_loop)
