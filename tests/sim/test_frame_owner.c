/* Tests of frame_owner.c: which code a stack frame belongs to. */
#include "sim/trace/frame_owner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

typedef struct sample {
    const char *file;
    const char *function;
    frag_frame_owner owner;
} sample;

/* Files as they stand in recordings that people published, with other names of users. */
static const sample samples[] = {
    {"/home/me/project/src/models/unet.py", "forward", FRAG_OWNER_PROGRAM},
    {"train.py", "main", FRAG_OWNER_PROGRAM},
    {"/home/me/a2/scripts/../src/profile.py", "run", FRAG_OWNER_PROGRAM},
    {"C:\\research\\fed\\client.py", "step", FRAG_OWNER_PROGRAM},
    {"/content/train.py", "main", FRAG_OWNER_PROGRAM},
    {"/tmp/ipykernel_114/3105878423.py", "<module>", FRAG_OWNER_PROGRAM},
    {"/tmp/ipython-input-1-2094.py", "<cell line: 0>", FRAG_OWNER_PROGRAM},
    {"<ipython-input-3-abcdef>", "<module>", FRAG_OWNER_PROGRAM},
    {"<command-123456>", "<module>", FRAG_OWNER_PROGRAM},
    {"<stdin>", "<module>", FRAG_OWNER_PROGRAM},
    {"<string>", "<module>", FRAG_OWNER_PROGRAM},
    {"/home/me/app.pyz/app/main.py", "main", FRAG_OWNER_PROGRAM},
    {"/home/me/torch/train.py", "main", FRAG_OWNER_PROGRAM},
    {"/home/me/lib/transformers/models/llama/modeling_llama.py", "forward", FRAG_OWNER_PROGRAM},
    {"/home/me/src/transformers/modeling_utils.py", "to", FRAG_OWNER_PROGRAM},
    {"/home/me/lib/losses.py", "loss", FRAG_OWNER_PROGRAM},
    {"/home/me/pythonlib/model.py", "forward", FRAG_OWNER_PROGRAM},
    {"/home/me/lib/pythonic/model.py", "forward", FRAG_OWNER_PROGRAM},
    {"/home/me/lib/cnn-v23/model.py", "forward", FRAG_OWNER_PROGRAM},
    {"/tmp/torchinductor_me.py", "call", FRAG_OWNER_PROGRAM},
    {"/home/me/torch/_/train.py", "main", FRAG_OWNER_PROGRAM},
    {"/home/me/gui.pyw", "main", FRAG_OWNER_PROGRAM},

    {"/home/me/.venv/lib/python3.12/site-packages/einops/einops.py", "rearrange",
     FRAG_OWNER_INSTALLED},
    {"/root/miniconda3/envs/a/lib/python3.10/site-packages/peft/peft_model.py", "forward",
     FRAG_OWNER_INSTALLED},
    {"/usr/local/lib/python3.10/dist-packages/accelerate/hooks.py", "new_forward",
     FRAG_OWNER_INSTALLED},
    {"D:\\Dev\\a2\\.venv\\Lib\\site-packages\\einops\\_backends.py", "einsum",
     FRAG_OWNER_INSTALLED},
    {"/home/me/.cache/uv/archive-v0/u8Jk/einops/einops.py", "rearrange", FRAG_OWNER_INSTALLED},
    {"/home/me/.pex/installed_wheels/1f/einops-0.7-py3-none-any.whl/einops/einops.py", "reduce",
     FRAG_OWNER_INSTALLED},

    {"/tmp/torchinductor_me/3u/c3uxhj5q2ablsq.py", "call", FRAG_OWNER_GENERATED},
    {"C:\\Temp\\torchinductor_me\\3u\\c3uxhj5q.py", "call", FRAG_OWNER_GENERATED},
    {"<eval_with_key>.7", "forward", FRAG_OWNER_GENERATED},
    {"<string>", "__init__", FRAG_OWNER_GENERATED},
    {"<__array_function__ internals>", "mean", FRAG_OWNER_GENERATED},

    {"/home/me/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py", "_call_impl",
     FRAG_OWNER_FRAMEWORK},
    {"/home/me/Documents/torch/lib/python3.10/site-packages/torch/_tensor.py", "backward",
     FRAG_OWNER_FRAMEWORK},
    {"C:\\x\\.venv\\lib\\site-packages\\torch\\storage.py", "__deepcopy__", FRAG_OWNER_FRAMEWORK},
    {"/home/me/fraglab/gpu_replay/dryrun/site/fraglab_dryrun/counts.py", "indexed",
     FRAG_OWNER_STANDARD},
    {"/home/me/fraglab_dryrun.py", "main", FRAG_OWNER_PROGRAM},
    {"/opt/pytorch/pytorch/torch/nn/functional.py", "linear", FRAG_OWNER_FRAMEWORK},
    {"/home/me/pytorch/torch/overrides.py", "handle", FRAG_OWNER_FRAMEWORK},
    {"/home/me/src/torch/_dynamo/eval_frame.py", "_fn", FRAG_OWNER_FRAMEWORK},
    {"/home/me/.cache/uv/archive-v0/u8Jk/torch/nn/modules/linear.py", "forward",
     FRAG_OWNER_FRAMEWORK},
    {"/a/lib/python3.13/site-packages/triton/testing.py", "do_bench", FRAG_OWNER_FRAMEWORK},

    {"/root/miniconda3/envs/py3.10/lib/python3.10/runpy.py", "_run_code", FRAG_OWNER_STANDARD},
    {"/usr/lib/python3.11/threading.py", "run", FRAG_OWNER_STANDARD},
    {"/usr/lib64/python3.9/asyncio/events.py", "_run", FRAG_OWNER_STANDARD},
    {"/Library/Frameworks/Python.framework/Versions/3.10/lib/python3.10/copy.py", "copy",
     FRAG_OWNER_STANDARD},
    {"C:\\Users\\Me\\uv\\python\\cpython-3.10.19-windows-x86_64-none\\lib\\copy.py", "deepcopy",
     FRAG_OWNER_STANDARD},
    {"C:\\Python311\\Lib\\threading.py", "run", FRAG_OWNER_STANDARD},
    {"C:\\Users\\Me\\anaconda3\\envs\\gpu\\lib\\copy.py", "deepcopy", FRAG_OWNER_STANDARD},
    {"C:\\Users\\Me\\anaconda3\\lib\\copy.py", "deepcopy", FRAG_OWNER_STANDARD},
    {"C:\\Users\\Me\\acondas\\lib\\copy.py", "deepcopy", FRAG_OWNER_STANDARD},
    {"C:\\Users\\Me\\canada\\lib\\copy.py", "deepcopy", FRAG_OWNER_PROGRAM},
    {"C:\\python\\python311.zip\\copy.py", "deepcopy", FRAG_OWNER_STANDARD},
    {"<frozen importlib._bootstrap>", "_call_with_frames_removed", FRAG_OWNER_STANDARD},

    {"/usr/local/src/conda/python-3.10.14/Objects/methodobject.c", "cfunction_call",
     FRAG_OWNER_NATIVE},
    {"thread48.o", "execute_native_thread_routine", FRAG_OWNER_NATIVE},
    {"eval_frame.c", "dynamo_eval_frame", FRAG_OWNER_NATIVE},
    {"/home/me/ext/kernel.cu", "launch", FRAG_OWNER_NATIVE},
    {"??", "torch::unwind::unwind()", FRAG_OWNER_NATIVE},
    {"", "", FRAG_OWNER_NATIVE},
    {"<", "", FRAG_OWNER_NATIVE},
    {".py", "", FRAG_OWNER_NATIVE},
    {".pyw", "", FRAG_OWNER_NATIVE},
};

static void files_belong_to_those_who_wrote_them(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        frag_frame_owner owner = frag_frame_owner_of(samples[i].file, samples[i].function);
        if (owner == samples[i].owner)
            continue;
        print_message("%s: %d, expected %d\n", samples[i].file, (int)owner, (int)samples[i].owner);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_belong_to_those_who_wrote_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
