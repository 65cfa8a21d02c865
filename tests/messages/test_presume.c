/* Tests of the rules that see an out of memory without a known wording. */
#include "messages/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

/* What the rules alone say, without the table of wordings. */
static bool is_presumed(const char *text)
{
    frag_messages messages;
    frag_messages_guess(&messages, text, strlen(text));
    const frag_message *best = frag_messages_best(&messages);
    bool is_oom = best != NULL && best->kind == FRAG_MESSAGE_OOM;
    frag_messages_destroy(&messages);
    return is_oom;
}

static void assert_presumed(const char *const *texts, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++)
        if (is_presumed(texts[i]) != expected)
            fail_msg("expected %s: %s", expected ? "an out of memory" : "none", texts[i]);
}

static void a_status_number_is_enough_where_its_interface_is_named(void **state)
{
    (void)state;
    static const char *const out[] = {
        "vkCreateImage returned -2",
        "vkAllocateMemory failed -10",
        "vmaCreateBuffer failed with VkResult -2",
        "clCreateBuffer failed: -4",
        "OpenCL error: -61",
        "Initializing OpenCL...\nstd::runtime_error - kernel queueing failed (res = -4)",
        "glGetError returned 0x505",
        "glError: 1285",
        "CUDA driver error 2",
        "cuBLAS error 3",
        "ze_result 0x70000003",
        "RuntimeError: zePhysicalMemCreate failed: 0x70000003",
        "nvmap: alloc failed -12",
        "[drm] *ERROR* failed to create GEM object, -12",
        "opencl could not copy buffer: -4",
        "alloc failed on card 1",
    };
    static const char *const not_out[] = {
        "alloc failed on board 1",
        "IP address allocation failed on GPU node 3",
        "opencl could not build kernel: -11",
        "vkCreateImage returned -3",
        "vkCreateImage returned 2",
        "vkAllocateMemory failed -4",
        "vkAllocateMemory failed -1000072003",
        "clCreateBuffer failed: -44",
        "clBuildProgram failed: -11",
        "read failed: -4",
        "zeInit failed: 0x78000001",
        "glGetError returned 0x500",
        "CUDA error 700",
        "CUDA tests failed: 2",
        "cuBLAS error 13",
        "CUDA error 2.5 s after the start",
        "[drm] *ERROR* failed to create GEM object, -22",
    };
    assert_presumed(out, sizeof out / sizeof *out, true);
    assert_presumed(not_out, sizeof not_out / sizeof *not_out, false);
}

static void an_allocator_of_a_runtime_is_of_a_device(void **state)
{
    (void)state;
    static const char *const out[] = {"aclrtMalloc failed", "cnrtMalloc failed"};
    static const char *const not_out[] = {"hostMalloc failed", "xMalloc failed", "jeMalloc failed",
                                          "myMalloc failed"};
    assert_presumed(out, sizeof out / sizeof *out, true);
    assert_presumed(not_out, sizeof not_out / sizeof *not_out, false);
}

static void sizes_say_it_where_the_need_is_more_than_there_is(void **state)
{
    (void)state;
    static const char *const out[] = {
        "Your model needs 18.4 GB but the GPU only has 12 GB",
        "Requested 12 GB, available 8 GB",
        "need 6144 MB, have 4096 MB on device 0",
        "GPU: need 1 MiB, have 1023 KiB",
        "step 3: need 6144 MB, have 4096 MB on device 0",
        "step 3 on this GPU of ours: 4096 MB available, it needs 6144 MB",
        "VRAM request 96 MiB, got 0",
        "OOM(dev=2): asked=16777216",
        "cuda buffer of 16777216 bytes exceeds the limit",
    };
    static const char *const not_out[] = {
        "Your model needs 8.4 GB but the GPU only has 12 GB",
        "Requested 8 GB, available 12 GB",
        "need 6144 MB, have 4096 MB of disk",
        "GPU: need 4096 MB, have 2 with 6144 MB",
        "GPU: need 1023 KiB, have 1 KiB",
        "recommended: needs 16 GB, has 8 GB",
        "VRAM request 96 MiB, got 3",
        "OOM(dev=2): asked=16777215",
        "cuda buffer of 16777215 bytes exceeds the limit",
        "Required: 22 GB, free: 9 GB\nMoved 13 GB to the host\nDone in 3 s",
    };
    assert_presumed(out, sizeof out / sizeof *out, true);
    assert_presumed(not_out, sizeof not_out / sizeof *not_out, false);
}

static void memory_that_is_refused_is_memory_that_ran_out(void **state)
{
    (void)state;
    static const char *const out[] = {
        "unable to commit 268435456 bytes of GPU memory",
        "failed to create memory block of 1048576 bytes",
        "memory request of 5.1G denied: only 3.2G left on cuda:0",
        "Couldn't get 700 MB of GPU RAM",
        "fatal error in cuda allocator: cannot satisfy request",
        "MTLBuffer allocation of 9663676416 bytes returned nil",
        "mmap of device memory failed: ENOMEM",
        "gpu: TTM buffer object placement failed: -ENOMEM",
        "KV cache does not fit: 12000 blocks needed, 8000 available",
        "No free blocks in device arena",
        "AssertionError: KV cache pool exhausted: requested 512 pages, 37 free of 8192",
    };
    static const char *const not_out[] = {
        "Failed to get memory info of GPU 0",
        "failed to create memory block of 1048575 bytes",
        "cannot read 268435456 bytes of GPU memory",
        "cannot free 268435456 bytes of GPU memory",
        "Failed to create image: memory type not supported",
        "// returns ENOMEM where the device has no room",
    };
    assert_presumed(out, sizeof out / sizeof *out, true);
    assert_presumed(not_out, sizeof not_out / sizeof *not_out, false);
}

static void what_a_person_says_of_memory_is_no_message(void **state)
{
    (void)state;
    static const char *const not_out[] = {
        "Currently the renderer uses a bit too much VRAM.",
        "this tends to happen when the app you're running runs out of GPU resources",
        "The 'out of video memory' error occurs when your CPU fails to allocate resources",
        "The first error means it ran out of memory causing the tool to crash.",
        "dug into `tts`'s `NvMapMemAlloc` failure a bit further, on the GPU memory was fine",
        "I would like to know what the VRAM limit of this is for, since we have had a lot of "
        "trouble "
        "with that on the GPU and it ran out of memory",
        "+    \"not enough GPU memory to prove this. at least 64GB is required.\"",
        ("[ pid ]  uid  tgid total_vm  rss oom_score_adj name\n[ 77 ]  0  77  104945  2751  0 "
         "slurmd"),
        "PASS: no memory leaks detected",
        "GPU monitor: oom adj failed",
        "W fit: failed to fit params to free device memory: n_gpu_layers already set by user",
        "GPU monitor: oom score failed",
        "crash_gpu()\nGC.gc() # GPU OOM\nexit() # GPU OOM",
        "Running Out of VRAM\nWhat is this error?\nCommon causes\n- textures exceed GPU memory",
        "O sistema fica sem memória física",
        "Process ran out of physical memory",
        "retry where cudaErrorMemoryAllocation is met, and when cudaErrorMemoryAllocation occurs",
        "1. GPU found\n2. GPU memory exhausted",
        "The model takes 24 GB, my card has 24 GB",
        "FAQ: Why do I get an \"Out of memory\" error message with the renderer?",
        "The RuntimeError: CUDA out of memory occurs when your GPU has too little of it",
    };
    static const char *const out[] = {
        "ERROR: the renderer uses too much VRAM",
        "thread 'main' panicked: called `unwrap()` on an `Err` value: OutOfDeviceMemory",
        "Error: the device you're using ran out of GPU memory",
        "This error means you ran out of memory on your GPU.",
        "it crashes with `ggml_vulkan: Device memory allocation of size 3959422976 failed.` always",
        "[info] CUDA device 0 reached memory limit while trying to allocate 414853888 bytes",
        "RangeError: 'GPUDevice': createBuffer failed, size is too large when it is mapped",
        "out of memory in ./grow.cu at line 34",
        "When loading the shader, Vulkan tries to allocate more memory than the available size.",
        "it seems not possible to allocate 66.50 MB of memory on my card, even if I reboot",
        "4090 ,out of memory",
        "1 GPU found\n2 GPU memory exhausted",
        "[Bug]: Some-30B-A3B OOM on 96GB single gpu",
        "bfc_allocator.cc:665] Chunk at 0x50 of size 256\nResourceExhaustedError: OOM",
        ("OOM RuntimeError is raised due to the memory cost. CPU mode is applied.\nERROR in "
         "training"),
    };
    assert_presumed(not_out, sizeof not_out / sizeof *not_out, false);
    assert_presumed(out, sizeof out / sizeof *out, true);
}

/* What programs print that no thread quotes: the forms of their own sources. */
static void a_person_who_tells_of_it_is_heard_where_nothing_else_is_said(void **state)
{
    (void)state;
    static const char *const out[] = {
        "After ten minutes the game crashed with an error saying I've run out of video memory.",
        "It crashes when loading a save with the `Ran out of video memory!` error on my card.",
        "The rest works. A popup says that it is out of video RAM. Nothing stands in the log.",
        "With the settings of before I now get an out of GPU memory error. Any idea why?",
        "With all layers on both cards I still OOM at 20 GB of the 24 that should be there.",
        "I can see from the log that EAX is 0x8876017C, an error of Direct3D on the card.",
        "If the batch is 64 or more the GPU runs out of memory. It is an old card of ours.",
        "On this card of mine, with a batch of 64 or above the GPU runs out of memory again.",
        "When I try to reproduce it, I bumped into the OOM issue (H100 with 96 GB). Why is it?",
        "It works in the notebook. But when I run it myself, there is CUDA out of memory here.",
        "I tried the program on an image of my own and cuda was out of memory. What can I do?",
        "When I infer with v1.0-test, cuda out of memory, but it is enough for the training of it.",
        "Every run of it ends up with an out-of-memory at the same point, even if I set 1 image.",
        "The problem is when an epoch ends, suddenly the GPU is busier and an OOM occurs there.",
        "When I sent a long sequence to the GPU of the lab, I met the 'out of memory' error.",
        "It is not fully utilizing the secondary GPU of the two cards, resulting in Cuda OOM",
        "문장 리스트에 대해 임베딩을 시도하면 GPU에서 OOM 문제가 발생합니다. 배치는 작습니다.",
        "When the training reached about 80 epochs, it showed OOM, and no other fold is there.",
        "The program runs out of GPU memory after ~1300 steps when it trains on the sand set.",
        "Its card is a 3090. The OOM error happens with scene 50 or 300. I don't know it at all.",
        "It crashes saying the game is trying to allocate more memory on my card than is "
        "available.",
        "When we train it on 8 cards, we are prompted with an out-of-memory error for the GPUs.",
        "Facing the same vRAM OOM memory issue in the snippet that you gave, with shorter files.",
        "I enlarged the batch, but an oom error was reported when batch_size was also set to 39.",
        "I run it and it is fine. But when i set PERIOD=1000 or others less than the "
        "SOLVER.MAX_ITER ,i get the CUDA out of memory  eror.",
        "I try it, but no matter how low I set it (even if it's one), it always tells me that it "
        "has run out of memory.",
        "I ran the code but it seems my gpu (2060) doesnt have enough vram. Thank you for it.",
        "When using 1060-3g for it, the GPU memory is not enough, how should I modify it? thanks",
        "Yes, it's a Cuda OOM error. I also try it with all the weights, and it is the same.",
    };
    static const char *const not_out[] = {
        "If it fails with an out of GPU memory error, you should lower the batch size first.",
        "We fixed the crash with an out of memory error of the GPU in the release of today.",
        "But I never got an out of GPU memory error, it only slows down to a crawl at night.",
        "If the batch is too large the GPU runs out of memory. The docs tell more of it here.",
        "If the batch is 64 or more the GPU may run out of memory. The docs tell more of it.",
        "When a 3D program shows the message 'out of video memory', it means the card is full.",
        "We need a way to tell the assistant that the job on the GPU failed due to OOM.",
        "I read the page about cuda out of memory of last week, and found it a good one.",
        "When we get an OOM on the GPU, we retry it with half of the batch, as the docs tell.",
        "Adam takes more GPU memory than SGD",
        "The problem may be that the GPU memory is not enough. Can you reduce the batch of it?",
        "Is it failing with a CUDA oom error, or something else?",
        "It is frustrating to get errors such as RuntimeError: CUDA out of Memory. It has fixes.",
        "PyTorch throws a CUDA Out of Memory error when the GPU memory is insufficient for them.",
        ("When the process uses\nmore memory than the system deems appropriate, it may be "
         "terminated"),
    };
    assert_presumed(out, sizeof out / sizeof *out, true);
    assert_presumed(not_out, sizeof not_out / sizeof *not_out, false);
}

static void a_failure_is_seen_whatever_its_class_and_object_are_called(void **state)
{
    (void)state;
    static const char *const out[] = {
        "{\"error\":{\"message\":\"Not enough device memory for this request: it needs about 53 "
        "MiB\","
        "\"type\":\"invalid_request_error\"}}",
        "Error: InvalidInput(\"insufficient device memory\")",
        "Unsupported: a 131072-token prompt does not fit in GPU memory",
        "[ERROR] Failed to allocate device memory for registers\n[ERROR] launch failed: -1",
        "newBufferWithLength failed, size = 1610612736",
        "RuntimeError: BlockPool exhausted: no free KV blocks",
        "ERROR: there is not enough space on the GPU for factorization.",
        "ValueError: it does not fit while keeping 0.78 GiB free on cuda:0 (0.96 GiB free)",
        "Warning: There's no memory left on device: 1\nterminate called after throwing an instance",
        "not enough free memory on the selected cards; or set SKIP_MEM_CHECK=1 to launch anyway",
        "[drm:vmw_shader_define] *ERROR* Out of graphics memory for shader creation.",
        "Error: InvalidParameter { name: \"size\", reason: \"exceeds GPU memory pool budget\" }",
        "HTTPException: 503: GPU memory low",
        "scheduler: KV pool exhausted: 0 pages free of 18432, evicting nothing (all pinned)",
        "device 0: want 2.50 GiB, 1.10 GiB free in total",
        "Exception: Error creating array grid: clCreateBuffer (-4)",
        "Error: failed to allocate GPU memory for project ml",
        "GPU 0 failed to allocate 20.0 GiB",
        "Failed to allocate buffer of size 128 KiB (flags { DeviceLocal | HostVisible })",
        "called `Result::unwrap()` on an `Err` value: BufferTooBig(2156988480)",
        "[h264_nvenc @ 0x7f616007d540] Failed creating CUDA context for NVENC: 0x2",
    };
    static const char *const not_out[] = {
        "Error: InvalidInput(1): the device memory pool has no name",
        "[ERROR] launch failed: -1\n[ERROR] Failed to allocate device memory for registers",
        "newBufferWithLength failed, size = 0",
        "there is not enough space on the disk",
        "the label does not fit on the button",
        "Warning: There's no memory left on device: 1",
        "Not enough free VRAM for parallel processing. Switching to serial",
        "octeon 0000:03:00.0: Unable to allocate device",
        "alloc_chrdev_region: Unable to allocate device number. Exiting...",
        "failed to allocate gpu resource to pod(train-7) on node(gpu-3)",
        "VkResult VK_ERROR_OUT_OF_POOL_MEMORY, creating another pool",
        "ERROR: SRV Descriptor heap full, cannot allocate texture",
        "Platform device allocation failed",
        "Couldn't allocate device private record",
        "manual S = 96 exceeds free VRAM, clamping to 71",
        "this keeps GPU memory low",
        "Exception: Error creating array grid: clCreateBuffer (-30)",
        "FAILED tests/test_pool.py::test_out_of_memory_is_raised - AssertionError: assert 3 == 4",
        "ERROR: failed to allocate GPU quota for project ml",
        "GPU: not enough memory for the fast mode, staying in light mode",
        "INFO pool: reserved 20.0 GiB on GPU 0, 0 failed allocations",
        "perl: Out of memory during request for 1048592 bytes, total sbrk() is 2143289344 bytes!",
        "error: vmalloc: allocation failure: 268439552 bytes, mode:0x2cc2(GFP_KERNEL)",
        "RangeError: Array buffer allocation failed",
        "RangeError: WebAssembly.Memory(): could not allocate memory",
    };
    assert_presumed(out, sizeof out / sizeof *out, true);
    assert_presumed(not_out, sizeof not_out / sizeof *not_out, false);
}

/* ---- texts of programs' sources */
/* The whole reader: the table of wordings, then the rules. */
static void assert_read(const char *const *texts, size_t count, frag_message_kind expected)
{
    for (size_t i = 0; i < count; i++) {
        frag_messages messages;
        frag_messages_read(&messages, texts[i], strlen(texts[i]));
        const frag_message *best = frag_messages_best(&messages);
        frag_message_kind kind = best != NULL ? best->kind : FRAG_MESSAGE_NONE;
        frag_messages_destroy(&messages);
        if (kind != expected)
            fail_msg("expected kind %d, not %d: %s", (int)expected, (int)kind, texts[i]);
    }
}

static void what_is_allocated_need_not_be_memory(void **state)
{
    (void)state;
    static const char *const none[] = {
        "failed to allocate pinned system memory: CUDA driver version is insufficient",
        "bug -- unable to allocate port for storage in project 4711",
        "Port allocation failed: no free ports in range",
        "Could not allocate enough operations",
        "Unable to allocate DeviceRelations structures",
        "line byte length 41943040 exceeds max buffer size 33554432",
        "[error] Failed to allocate workspace. Ensure the workspace directory is writable.",
        "what():  failed to allocate descriptor sets!",
        "error: unable to allocate 2 GPUs for job 7712",
        "could not allocate GPU node for reservation",
        "dwc3 fe800000.usb: Failed to allocate event buffers",
        "0/4 nodes are available: 2 Insufficient memory, 4 Insufficient nvidia.com/gpu.",
        "status = StatusCode.RESOURCE_EXHAUSTED: Received message larger than max (684 vs. 419)",
        "RuntimeError: std::bad_alloc: cudaErrorInsufficientDriver: the version is insufficient",
        "insufficient space on /srv: 812MiB free, need 2048MiB",
        "Text2CompGPUUnavailableError: Unable to allocate a GPU for the Text2Comp stage",
        "Error: could not allocate a GPU",
        ("{\"card\":{\"name\":\"Software "
         "GPU\"},\"is_same\":true,\"peak_reserved\":{\"sim_bytes\":8,"
         "\"difference_bytes\":0},\"device_calls\":{\"sim\":296},\"oom\":{\"sim_event\":null}}"),
        "mlx5_core 0000:3b:00.0: failed to allocate command entry",
        "Fatal error: failed to reserve memory region [0x00f00000-0x00f0ffff]",
        "[hot] could not reserve memory within 2GB of the exe",
        "cudaMalloc failed: CUDA driver version is insufficient for CUDA runtime version",
        "cuMemAlloc failed: no CUDA-capable device is detected",
        "cudaMalloc failed: all CUDA-capable devices are busy or unavailable",
        "Strategy allocation limit exceeded; Concentration limit exceeded",
        "[PCI] not enough MMIO resources: no space for [mem size 0x400000000 64bit pref]",
        ("[  5.0]  oom_kill_process from out_of_memory+0x21/0x34\n[  5.1]  out_of_memory from "
         "x+0x1/0x2"),
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed.",
        "ncclSystemError: System call (socket, malloc, munmap, etc) failed.",
        "The 'CUDA out of memory' error occurs when your GPU does not have enough VRAM",
        "It may display an error that reads, 'System is out of GPU memory', in a large scene.",
        "Its 'System is out of GPU memory' error signals that your card has too little of it.",
    };
    static const char *const out[] = {
        "failed to allocate descriptor memory on GPU 0: 268435456 bytes",
        "unable to allocate 4 GiB for GPU port buffers",
        "Could not allocate enough space for the mesh",
        "could not reserve memory for the KV cache on the GPU",
        "AssertionError: No free GPU memory found (>1000)",
        "Low GPU memory: 3.12 GB free, 8.00 GB required",
        "CudaNamaError::InvalidInput: not enough free device memory",
        "Assertion `p != NULL && \"unable to allocate buffer on device\"' failed.",
        "request lanes: rows activation alloc failed on card 1",
        "Assertion failed: [MetalBuffer.cpp:214] Failed to create buffer of size 67108864",
        "You've run out of graphics memory. Reduce the photos, or try using smaller photos",
        "GPU 0: 23028MiB / 24564MiB used, nothing to evict, request of 2048MiB refused",
        "adreno-gsl: GSL MEM ERROR: kgsl_sharedmem_alloc ioctl failed. errno 12 Out of memory",
        "NvMapMemAllocInternalTagged: 1075072515 error 12",
        "amdgpu 0000:03:00.0: failed to allocate 268435456 bytes",
        "i915 0000:00:02.0: out of GPU memory",
        "nvjpegDecode returned NVJPEG_STATUS_ALLOCATOR_FAILURE (5)",
        "cuvidCreateDecoder(&decoder, &info) returned error 2 at decoder.cpp:480",
        "[pool] OOM(dev=2): asked=3221225472 free=1073741824",
        "Image::create: vmaCreateImage failed ec=-2",
        "It ran out of device memory. Try a shorter chat or restart the app and retry.",
        "ERROR: GPU 3 has only 812MiB free, need at least 20000MiB.",
        "VkResult -2 (out of device memory: the driver is likely wedged; do not keep retrying)",
        "Not enough VRAM to load this model at the context size. Lower it, or unload what is here.",
        "Model requires 24.3 GB VRAM but GPU 0 (RTX 4070) offers 11.6 GB",
        "CUDA out of memory in %fused_computation = f32[8,8]",
        "GPU 0 at 99%used, device out of memory",
        "cudaHostAlloc ok, cudaMalloc failed",
        "Unable to allocate VRAM to render the frame\nLower the size, or install more RAM.",
        "04-19 09:09:29.755: E/Adreno(21417): <drvGlTexImage2D:433>: GL_OUT_OF_MEMORY",
        "OutOfMemoryError                 Traceback (most recent call last)\n--> 1 m.to(device)",
        "raise ValueError(\"No memory. \") ValueError: No available memory for the cache blocks.",
        "Failed to create Image because we ran out of device memory (VRAM)",
        "bfc_allocator.cc:1010] Stats:\nLimit:  55115776\nInUse:  2048\nMaxInUse:  2048",
        "NotEnoughVRamError: 13.18GB of VRAM is required, but only 11.46GB is available",
        "I get an out-of-memory error.",
        "OOM error while running LoRA",
    };
    static const char *const host[] = {
        "It was killed with signal -9.\nPS: pretty sure it is OOM on cpu instead of gpu.",
        "Memory limit exceeded (131.2 MB). Restarting worker seamlessly...",
        "errorMessage: 'Sort exceeded memory limit of 33554432 bytes'",
        "Memory usage exceeds limit: 612.4 MB > 512 MB",
        "Failed to allocate GPU host context memory",
        "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\nand then I saw that it crashed with out of memory",
        "error: Unable to allocate array with shape (93849, 1) and data type float64",
        "Unable to allocate enough memory to render the frame\nLower the size, or install more "
        "RAM.",
        "Insufficient memory to run the circuit, required: 16384M, maximum: 15903M, 'device': "
        "'CPU'",
        "[GPU] build failed!\n[CL ext] Can not allocate 1474560 bytes for USM Host. error: 0",
        "SLUB: Unable to allocate memory on node -1, gfp=0x480020(GFP_ATOMIC)",
        "ptxas fatal   : Memory allocation failure",
        "nvme nvme0: failed to allocate queue memory",
        "Error: [Internal Lua error: Call failure] not enough memory",
        "NTFS-fs error (device sda1): Not enough memory to allocate buffer for attribute list.",
    };
    assert_read(none, sizeof none / sizeof *none, FRAG_MESSAGE_NONE);
    assert_read(out, sizeof out / sizeof *out, FRAG_MESSAGE_OOM);
    assert_read(host, sizeof host / sizeof *host, FRAG_MESSAGE_HOST);
}

static void a_program_that_goes_on_says_what_it_does_now(void **state)
{
    (void)state;
    static const char *const harmless[] = {
        "CUDA out of memory: retrying the step with 2048 tokens per micro-batch",
        "Not enough GPU memory to do it on the device, using CUDA managed memory instead.",
        "it needs more VRAM than the 3.2 GB free — caching it at 1280x720 instead",
        "OOM error, reducing batch size to 16 and retrying",
        "WARN GPU alloc failed, falling back to CPU error=\"out of memory\"",
        "SAM3 fell back to CPU due to GPU OOM\nSAM3 loaded on cpu",
        "SKIPPED [1] tests/test_trainer.py:142: Not enough GPU memory",
    };
    static const char *const out[] = {
        "CUDA out of memory, retry failed",
        "Warning: Device memory exhausted.\nfailed to create the image, exiting",
        "CUDA out of memory, try using a smaller model",
        "Memory requirement exceeds available VRAM. Consider: reducing batch size, using less",
        "RuntimeError: CUDA out of memory, reducing the batch size may help",
    };
    assert_read(harmless, sizeof harmless / sizeof *harmless, FRAG_MESSAGE_HARMLESS);
    assert_read(out, sizeof out / sizeof *out, FRAG_MESSAGE_OOM);
}

static void a_batch_that_is_skipped_is_lost(void **state)
{
    (void)state;
    static const char *const out[] = {
        "WARNING: ran out of memory, skipping batch",
        "| WARNING: ran out of memory in worker 0, skipping batch",
        "[rank0] OOM encountered. Skipping batch 32 ...",
        "OOM on batch 12, skipping",
        "skipped batch 12 due to OOM",
        "GPU out of memory on image 14, skip it",
        "(OOM) step 1200 skipped",
    };
    static const char *const harmless[] = {
        "warning: out of memory, retrying with half",
        "Not enough GPU memory for CUDA graph, skipping graph capture",
        "Not enough memory for the image cache, skipping image cache",
    };
    static const char *const none[] = {
        "skip_oom_batches: true",
        "We skip samples longer than 512 to avoid OOM",
        "skip the batch if it runs out of memory",
    };
    assert_read(out, sizeof out / sizeof *out, FRAG_MESSAGE_OOM);
    assert_read(harmless, sizeof harmless / sizeof *harmless, FRAG_MESSAGE_HARMLESS);
    assert_read(none, sizeof none / sizeof *none, FRAG_MESSAGE_NONE);
}

static void what_a_source_says_of_errors_is_no_message(void **state)
{
    (void)state;
    static const char *const not_out[] = {
        "            Log(\"VK_ERROR_OUT_OF_DEVICE_MEMORY\\n\");",
        "VKErrorOutOfDeviceMemory.Register(\"out of device memory\")",
        "assertEquals(LoadFailure.OUT_OF_VRAM, classify(\"failed to allocate VRAM\"))",
        "  \"Memory pool exhausted\",\n  \"Resource pool at capacity\",",
        "policy   peak reserved   utilisation   OOM",
        "  ALLOC_FAIL,     /* VRAM allocation failed */",
        "OOM_MARKERS = (",
        "raise torch.cuda.OutOfMemoryError(\"simulated OOM\")",
        "static E_OUTOFMEMORY => -2147024882",
        "Unable to reserve memory region [0x00f00000-0x00f0ffff]",
        "failed to query memory to grow the pool of 268435456 bytes on gpu",
        "- `VK_ERROR_OUT_OF_DEVICE_MEMORY`: no memory\n- `VK_ERROR_DEVICE_LOST`: lost",
        /* a statement whose text stands behind a call, below as much of its source */
        "if not blocks:\n    blocks = list(order)\n"
        "    # 012345678901234567890123456789012345678901234567890123456789012345678901\n"
        "    # 012345678901234567890123456789012345678901234567890123456789012345678901\n"
        "    # 012345678901234567890123456789012345678901234567890123456789012345678901\n"
        "    # 012345678901234567890123456789012345678901234567890123456789012345678901\n"
        "    # 012345678901234567890123456789012345678901234567890123456789012345678901\n"
        "    # 012345678901234567890123456789012345678901234567890123456789012345678901\n"
        "    raise PoolError(\"GPU memory exhausted\")",
    };
    static const char *const out[] = {
        "InvalidInput(\"insufficient device memory\")",
        "Error: DriverErr\nor(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")",
        "af::exception: AF_ERR_NO_MEM (101) in af::array",
        "OOM(dev=2): asked=3221225472",
        "10:02:18 insufficient memory on GPU 0",
        "GGML_ASSERT(mem != nullptr && \"Failed to allocate tensor memory\") failed",
        "Error: Failed to grow GPU pool to 4097 slots!",
        "runner.Unsupported: a 30211-token prompt does not fit in GPU memory",
        "Device limit exceeded: scores (requested 5368709120 bytes, safe limit 2147483648 bytes)",
        "E/GlDevice: glBufferData failed for buffer 12 (536870912 bytes)",
    };
    assert_presumed(not_out, sizeof not_out / sizeof *not_out, false);
    assert_presumed(out, sizeof out / sizeof *out, true);
}

/* As a piece of a larger buffer is given. */
static void words_of_other_languages_end_where_the_text_does(void **state)
{
    (void)state;
    static const char *const texts[] = {"GPU: Speichermangel_x", "CUDA-Fehler: Speicher voll_x"};
    for (size_t i = 0; i < 2; i++)
        for (size_t behind = 0; behind < 3; behind++) {
            frag_messages messages;
            frag_messages_guess(&messages, texts[i], strlen(texts[i]) - behind);
            assert_int_equal(frag_messages_best(&messages) != NULL, behind == 2);
            frag_messages_destroy(&messages);
        }
}

/* So many lines above it or below. */
static void what_stands_near_a_heading_of_a_guide_is_an_example(void **state)
{
    (void)state;
    static const char heading[] = "Common causes:\n", name[] = "CUDA out of memory.\n";
    for (unsigned lines = 0; lines < 12; lines++)
        for (unsigned is_below = 0; is_below < 2; is_below++) {
            frag_text text = {0};
            frag_text_add(&text, "%s", is_below ? name : heading);
            for (unsigned i = 0; i < lines; i++)
                frag_text_add(&text, "line %u of what is said\n", i);
            frag_text_add(&text, "%s", is_below ? heading : name);
            if (is_presumed(text.bytes) != (lines > 7))
                fail_msg("%u lines, %u", lines, is_below);
            frag_text_destroy(&text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_number_is_enough_where_its_interface_is_named),
        cmocka_unit_test(an_allocator_of_a_runtime_is_of_a_device),
        cmocka_unit_test(sizes_say_it_where_the_need_is_more_than_there_is),
        cmocka_unit_test(memory_that_is_refused_is_memory_that_ran_out),
        cmocka_unit_test(what_a_person_says_of_memory_is_no_message),
        cmocka_unit_test(a_person_who_tells_of_it_is_heard_where_nothing_else_is_said),
        cmocka_unit_test(a_failure_is_seen_whatever_its_class_and_object_are_called),
        cmocka_unit_test(what_is_allocated_need_not_be_memory),
        cmocka_unit_test(a_program_that_goes_on_says_what_it_does_now),
        cmocka_unit_test(a_batch_that_is_skipped_is_lost),
        cmocka_unit_test(what_a_source_says_of_errors_is_no_message),
        cmocka_unit_test(words_of_other_languages_end_where_the_text_does),
        cmocka_unit_test(what_stands_near_a_heading_of_a_guide_is_an_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
