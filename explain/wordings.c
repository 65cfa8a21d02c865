#include "explain/wordings.h"

/* Short names, so that a wording is a line. */
#define R FRAG_FIGURE_REQUESTED
#define T FRAG_FIGURE_TOTAL
#define F FRAG_FIGURE_FREE
#define A FRAG_FIGURE_ALLOCATED
#define V FRAG_FIGURE_RESERVED
#define I FRAG_FIGURE_IDLE
#define P FRAG_FIGURE_PRIVATE
#define L FRAG_FIGURE_LIMIT
#define O FRAG_FIGURE_OTHERS
#define B FRAG_FIGURE_LARGEST
#define X FRAG_FIGURE_EXCESS
#define NOT FRAG_CAPTURE_NOTHING
#define GPU FRAG_CAPTURE_DEVICE

#define OPENS(framework_, pattern_)                                                                \
    .pattern = pattern_, .role = FRAG_WORDING_OPENS, .framework = FRAG_FRAMEWORK_##framework_
#define FIELD(pattern_) .pattern = pattern_, .role = FRAG_WORDING_FIELD
#define TELLS(pattern_)                                                                            \
    .pattern = pattern_, .role = FRAG_WORDING_FIELD, .place = FRAG_WORDING_TELLING
#define OTHER(role_, pattern_) .pattern = pattern_, .role = FRAG_WORDING_##role_
#define SETS(setting_, pattern_)                                                                   \
    .pattern = pattern_, .role = FRAG_WORDING_SETTING, .setting = FRAG_SETTING_##setting_
#define CODE .place = FRAG_WORDING_AS_CODE
#define BARE .place = FRAG_WORDING_AT_START | FRAG_WORDING_AT_END

/* Sources: the messages themselves (tests/data/oom-messages names a thread for each) and, for
 * PyTorch, the releases named beside them. Of two that begin alike the longer one comes first. */
const frag_wording frag_wordings[] = {
    /* ---- PyTorch: what was asked */
    {OPENS(PYTORCH_ASYNC, "allocationondevice#wouldexceedallowedmemory"), .figures = {GPU}},
    {OPENS(PYTORCH_ASYNC, "allocationondevice"), BARE},
    {OPENS(PYTORCH_MPS, "mpsbackendoutofmemory")},
    {OPENS(PYTORCH_XPU, "cannotallocatememoryblockwithsizelargerthan%"), .figures = {NOT},
     .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(PYTORCH, "triedtoallocatemorethan1ebmemory"), .says = FRAG_SAYS_HUGE},
    {OPENS(PYTORCH_XPU, "xpuoutofmemory.triedtoallocate%"), .figures = {R}},
    {OPENS(PYTORCH_HIP, "hipoutofmemory.triedtoallocate%"), .figures = {R}},
    {OPENS(PYTORCH_NPU, "npuoutofmemory.triedtoallocate%"), .figures = {R}},
    {OPENS(PYTORCH, "cudaoutofmemory.triedtoallocate%"), .figures = {R}},
    {OPENS(UNKNOWN, "triedtoallocate%"), .figures = {R}},
    {OPENS(PYTORCH, "cudaoutofmemory"), BARE},
    {OPENS(PYTORCH, "cudaoutofthememory.triedtoallocate%"), .figures = {R}},
    {OPENS(PYTORCH_HIP, "hipoutofmemory"), BARE},
    {OPENS(PYTORCH_XPU, "xpuoutofmemory"), BARE},
    {OPENS(PYTORCH_NPU, "npuoutofmemory"), BARE},

    /* ---- PyTorch to 2.0 */
    {TELLS("(gpu#;%totalcapacity"), .figures = {GPU, T}},
    {TELLS("(npu#;%totalcapacity"), .figures = {GPU, T}},
    {TELLS("%totalcapacity"), .figures = {T}},
    {TELLS("%alreadyallocated"), .figures = {A}},
    {FIELD("%free;"), .figures = {F}},
    {FIELD("%allowed;"), .figures = {L}},
    {TELLS("%reservedintotalbypytorch)ifreserved"), .figures = {V},
     .release = "PyTorch 1.10 to 2.0"},
    {TELLS("%reservedintotalbypytorch"), .figures = {V}, .release = "PyTorch 1.4 to 2.0"},
    {FIELD("%cached)"), .figures = {FRAG_CAPTURE_CACHED}, .says = FRAG_SAYS_CACHED,
     .release = "PyTorch 1.0 to 1.3"},

    /* ---- PyTorch from 2.1 on */
    {TELLS("gpu#hasatotalcapactyof%ofwhich%isfree"), .figures = {GPU, T, F},
     .release = "PyTorch 2.1"},
    {TELLS("gpu#hasatotalcapacityof%ofwhich%isfree"), .figures = {GPU, T, F},
     .release = "PyTorch 2.2 or later"},
    {FIELD("totalcapacityof%"), .figures = {T}},
    {FIELD("capacityof%ofwhich%isfree"), .figures = {T, F}},
    {FIELD("totalcapactyof%"), .figures = {T}},
    {FIELD("ofwhich%isfree"), .figures = {F}},
    {FIELD("process#has%memoryinuse"), .figures = {NOT, FRAG_CAPTURE_PROCESS}},
    {FIELD("thisprocesshas%memoryinuse"), .figures = {FRAG_FIGURE_PROCESS}},
    {FIELD("with%allocatedinprivatepools"), .figures = {P}, .release = "PyTorch 2.5 or later"},
    {TELLS("%isallocatedbypytorch"), .figures = {A}},
    {TELLS("%isreservedbypytorchbutunallocated"), .figures = {I}},
    {FIELD("docs.pytorch.org/docs/stable/notes/cuda.html#optimizing"),
     .release = "PyTorch 2.11 or later"},

    /* ---- PyTorch with cudaMallocAsync */
    {FIELD("currentlyallocated:%"), .figures = {A}},
    {FIELD("requested:%"), .figures = {R}},
    {FIELD("devicelimit:%"), .figures = {T}},
    {FIELD("free(accordingtocuda):%"), .figures = {F}},
    {FIELD("memoryfraction):%"), .figures = {L}},

    /* ---- PyTorch on MPS: the limit is a share of the recommended working set */
    {FIELD("mpsallocated:%"), .figures = {A}},
    {FIELD("otherallocations:%"), .figures = {O}},
    {FIELD("maxallowed:%"), .figures = {L}},
    {OTHER(HINT, "usepytorch_mps_high_watermark_ratio")},

    /* ---- PyTorch and its neighbours without figures */
    {OPENS(PYTORCH, "cudaruntimeerror(2):outofmemory")},
    {OPENS(PYTORCH, "thcudacheckfail*error=2:outofmemory")},
    {OPENS(PYTORCH, "cudaerror:outofmemory")},
    {OPENS(PYTORCH, "cudadrivererror:outofmemory")},
    {OPENS(PYTORCH, "acceleratorerror:cudaerror:outofmemory")},
    {OPENS(PYTORCH_HIP, "hiperror:outofmemory")},
    {OPENS(PYTORCH, "cublas_status_alloc_failed"), CODE, .says = FRAG_SAYS_LIBRARY},
    {OPENS(PYTORCH, "cudnn_status_alloc_failed"), CODE, .says = FRAG_SAYS_LIBRARY},
    {OPENS(PYTORCH, "cusparse_status_alloc_failed"), CODE, .says = FRAG_SAYS_LIBRARY},
    {OPENS(PYTORCH, "cusolver_status_alloc_failed"), CODE, .says = FRAG_SAYS_LIBRARY},
    {OPENS(PYTORCH, "cudafailure'outofmemory'"), .says = FRAG_SAYS_LIBRARY},
    {OPENS(PYTORCH, "cudafailure2'outofmemory'"), .says = FRAG_SAYS_LIBRARY},
    {OPENS(UNKNOWN, "failedtocudacalloc#bytes"), .figures = {R}, .says = FRAG_SAYS_LIBRARY},
    {OPENS(UNKNOWN, "failedtocudacallocasync#bytes"), .figures = {R}, .says = FRAG_SAYS_LIBRARY},
    {OPENS(UNKNOWN, "failedtocudamalloc#bytes"), .figures = {R}, .says = FRAG_SAYS_LIBRARY},
    {OPENS(UNKNOWN, "memorynotavailabletoallocatebuffer:#"), .figures = {R},
     .says = FRAG_SAYS_LIBRARY},
    {OPENS(UNKNOWN, "cudafailedwitherroroutofmemory")},
    {OPENS(UNKNOWN, "cudafailedwitherror2outofmemory")},
    {OPENS(PYTORCH_XPU, "ur_result_error_out_of_device_memory"), CODE},
    {OPENS(PYTORCH_XPU, "ur_result_error_out_of_resources"), CODE},
    {OPENS(PYTORCH_XPU, "pi_error_out_of_resources"), CODE},

    /* ---- programs beside the frameworks */
    {OPENS(UNKNOWN, "cudasuccess(2vs.0)")},
    {OPENS(UNKNOWN, "cudamallocerroroutofmemory")},
    {OPENS(UNKNOWN, "cudacustomallocatoroutofmemory[requestedspace:%"), .figures = {R}},
    {OPENS(UNKNOWN, "outofgpuandsharedhostmemory")},
    {OPENS(UNKNOWN, "insufficientmemoryonaccelerator")},
    {OPENS(UNKNOWN, "optix_error_device_out_of_memory"), CODE},
    {OPENS(UNKNOWN, "(-217:gpuapicall)outofmemory")},

    /* ---- TensorFlow, and the allocator that XLA took over from it */
    {OPENS(TENSORFLOW, "ranoutofmemorytryingtoallocate%"), .figures = {R}},
    {OPENS(TENSORFLOW, "oomwhenallocatingtensorwithshape&"), .figures = {R}},
    {OPENS(TENSORFLOW, "oomwhenallocatingtensorwithshape")},
    {OPENS(TENSORFLOW, "oomwhenallocatingtensorofshape&"), .figures = {R}},
    {OPENS(TENSORFLOW, "oomwhenallocatingtensorofshape")},
    {OPENS(TENSORFLOW, "cumemallocasyncfailedtoallocate#bytes"), .figures = {R}},
    {OPENS(TENSORFLOW, "dsttensorisnotinitialized")},
    {FIELD("(roundedto#)"), .figures = {R}},
    {FIELD("freememory/totalmemory:#/#"), .figures = {F, T}},
    {TELLS("stats:limit:#"), .figures = {T}},
    {FIELD("inuse:#"), .figures = {A}},
    {FIELD("largestfreeblock:#"), .figures = {B}},
    {.pattern = "sumtotalofin-usechunks:%",
     .role = FRAG_WORDING_FIELD,
     .place = FRAG_WORDING_TELLING,
     .figures = {A},
     .says = FRAG_SAYS_DUMP},
    {OTHER(HARMLESS, "thecallerindicatesthatthisisnotafailure")},

    /* ---- JAX, XLA */
    {OPENS(JAX, "outofmemorywhiletryingtoallocate#bytes"), .figures = {R}},
    {OPENS(JAX, "outofmemorywhiletryingtoallocate%"), .figures = {R}},
    {OPENS(JAX, "outofmemoryallocating#bytes."), .figures = {R}},
    {OPENS(JAX, "ranoutofmemoryinmemoryspacehbm.used%of%hbm.exceededhbmcapacityby%"),
     .figures = {A, T, X}, .says = FRAG_SAYS_WHOLE},
    {OPENS(JAX, "ranoutofmemoryinmemoryspace*.used%of%"), .figures = {A, T},
     .says = FRAG_SAYS_WHOLE},
    {OPENS(JAX, "failedtoallocaterequestfor%"), .figures = {R}},
    {OPENS(JAX, "failedtoallocate#bytesfornewconstant"), .figures = {R}},
    {OPENS(JAX, "attemptingtoallocate%.thatwasnotpossible.thereare%free"), .figures = {R, F}},
    {OPENS(JAX, "attemptingtoreserve%atthebottomofmemory.thatwasnotpossible.thereare%free"),
     .figures = {R, F}},
    {OPENS(JAX, "resource_exhausted:outofmemory")},

    /* ---- CuPy */
    {OPENS(CUPY, "outofmemoryallocating#bytes(allocatedsofar:#bytes,limitsetto:#bytes"),
     .figures = {R, A, L}},
    {OPENS(CUPY, "outofmemoryallocating#bytes(allocatedsofar:#bytes"), .figures = {R, A}},
    {OPENS(CUPY, "outofmemorytoallocate#bytes(total#bytes,limitsetto#bytes"),
     .figures = {R, NOT, L}},
    {OPENS(CUPY, "outofmemorytoallocate#bytes(total#bytes"), .figures = {R, NOT}},
    {OPENS(CUPY, "outofmemorytoallocate#bytes"), .figures = {R}},

    /* ---- RMM */
    {OPENS(RMM, "maximumpoolsizeexceeded(failedtoallocate%)"), .figures = {R},
     .says = FRAG_SAYS_POOL_FULL},
    {OPENS(RMM, "maximumpoolsizeexceeded"), .says = FRAG_SAYS_POOL_FULL},
    {OPENS(RMM, "exceededmemorylimit"), .says = FRAG_SAYS_POOL_FULL},
    {OPENS(RMM, "std::bad_alloc:out_of_memory:cudaerror")},
    {OPENS(RMM, "std::bad_alloc:cudaerror")},
    {OPENS(RMM, "std::bad_alloc:out_of_memory:rmmfailure")},
    {OPENS(RMM, "rmm_error_out_of_memory"), CODE},
    {OPENS(RMM, "(failedtoallocate%)"), .figures = {R}},
    {FIELD("current/max/trysize=%,%,%"), .figures = {V, L, NOT}},

    /* ---- ggml, llama.cpp */
    {OPENS(GGML, "allocating%ondevice#:cudamallocfailed:outofmemory"), .figures = {R, GPU}},
    {OPENS(GGML, "allocating%ondevice#:cudamallocfailed"), .figures = {R, GPU}},
    {OPENS(UNKNOWN, "cudamallocfailed:outofmemory")},
    {OPENS(GGML, "failedtoallocatecuda#bufferofsize#"), .figures = {GPU, R}},
    {OPENS(GGML, "failedtoallocaterocm#bufferofsize#"), .figures = {GPU, R}},
    {OPENS(GGML, "failedtoallocatevulkan#bufferofsize#"), .figures = {GPU, R}},
    {OPENS(GGML, "failedtoallocatemetalbufferofsize#"), .figures = {R}},
    {OPENS(GGML, "devicememoryallocationofsize#failed"), .figures = {R}},
    {OPENS(GGML, "size#islargerthanbuffermaximumof#"), .figures = {R, NOT},
     .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(GGML, "kiogpucommandbuffercallbackerroroutofmemory")},
    {OPENS(UNKNOWN, "erroroutofdevicememory"), CODE},
    {OPENS(UNKNOWN, "vk_error_out_of_device_memory"), CODE},
    {OPENS(UNKNOWN, "vkallocatememoryfailed-2")},

    /* ---- ONNX Runtime, PaddlePaddle, vLLM */
    {OPENS(ONNXRUNTIME, "failedtoallocatememoryforrequestedbufferofsize#"), .figures = {R}},
    {OPENS(ONNXRUNTIME, "availablememoryof#issmallerthanrequestedbytesof#"), .figures = {F, R},
     .says = FRAG_SAYS_POOL_FULL},
    {OPENS(PADDLE, "cannotallocate%memoryongpu#,%memoryhasbeenallocatedandavailablememoryisonly%"),
     .figures = {R, GPU, V, F}},
    {OPENS(PADDLE, "cannotallocate%memoryongpu#,availablememoryisonly%"), .figures = {R, GPU, F}},
    {OPENS(PADDLE, "cannotallocate%memoryongpu"), .figures = {R}},
    {OPENS(PADDLE, "cannotallocate%gpumemory,availablememoryis%"), .figures = {R, F}},
    {OPENS(PADDLE, "enforceallocating<=availablefailed,#>#"), .figures = {R, F}},
    {OPENS(VLLM, "freememoryondevice*(%/%)onstartupislessthandesiredgpumemoryutilization"),
     .figures = {F, T}, .says = FRAG_SAYS_UTILISATION},
    {OPENS(VLLM, "onstartupislessthandesiredgpumemoryutilization"), .says = FRAG_SAYS_UTILISATION},
    {FIELD("(0.#,%)"), .framework = FRAG_FRAMEWORK_VLLM, .figures = {NOT, R}},
    {OPENS(VLLM, "noavailablememoryforthecacheblocks"), .says = FRAG_SAYS_POOL_FULL},
    {OPENS(VLLM, "%kvcacheisneeded,whichislargerthantheavailablekvcachememory(%)"),
     .figures = {R, F}, .says = FRAG_SAYS_POOL_FULL},
    {OPENS(VLLM, "islargerthanthemaximumnumberoftokensthatcanbestoredinkvcache"),
     .says = FRAG_SAYS_POOL_FULL},
    {OPENS(SGLANG, "notenoughmemory.pleasetrytoincrease--mem-fraction-static"),
     .says = FRAG_SAYS_POOL_FULL},
    {OPENS(SGLANG, "notenoughmemory.pleasetryincreasing--mem-fraction-static"),
     .says = FRAG_SAYS_POOL_FULL},

    /* ---- the driver's own words, whoever passes them on */
    {OPENS(UNKNOWN, "failedtoallocate*(#bytes)fromdevice:cuda_error_out_of_memory"),
     .figures = {R}},
    {OPENS(UNKNOWN, "failedtoallocate*(#bytes)fromdevice:resource_exhausted"), .figures = {R}},
    {OPENS(UNKNOWN, "failedtoallocate*(#bytes)fromdevice:hip_error_outofmemory"), .figures = {R}},
    {OPENS(UNKNOWN, "failedtoallocate%fromdevice:cuda_error_out_of_memory"), .figures = {R}},
    {OPENS(UNKNOWN, "failedtoallocate%fromdevice:hip"), .figures = {R}},
    {OPENS(UNKNOWN, "memoryallocationerroronworker#:"), .figures = {NOT}},
    {FIELD("-freememory:#"), .figures = {F}},
    {FIELD("-requestedmemory:#"), .figures = {R}},
    {OPENS(UNKNOWN, "outofgpumemorytryingtoallocate%"), .figures = {R}},
    {FIELD("effectivegpumemoryusage:*(%/%)"), .figures = {V, T}},
    {OPENS(UNKNOWN, "cuda:outofmemory"), .place = FRAG_WORDING_AT_END},
    {OPENS(UNKNOWN, "cuda_error_out_of_memory"), CODE},
    {OPENS(UNKNOWN, "cudaerrormemoryallocation"), CODE},
    {OPENS(UNKNOWN, "thrust::system::detail::bad_alloc")},
    {OPENS(UNKNOWN, "hiperroroutofmemory"), CODE},
    {OPENS(UNKNOWN, "hip_error_out_of_memory"), CODE},
    {OPENS(UNKNOWN, "hip_error_outofmemory"), CODE},
    {OPENS(UNKNOWN, "hsa_status_error_out_of_resources"), CODE},
    {OPENS(UNKNOWN, "cl_mem_object_allocation_failure"), CODE},
    {OPENS(UNKNOWN, "exceededmaxsizeofmemoryobjectallocation:requested#bytes"), .figures = {R},
     .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(UNKNOWN, "attemptingtoallocate#byteswhichisgreaterthanthemaximumallowedbuffersize"),
     .figures = {R}, .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(UNKNOWN, "notenoughmemorytohandle#prefilltokens"), .figures = {NOT}},
    {OPENS(UNKNOWN, "couldnotallocatetensorwith#bytes.thereisnotenoughgpuvideomemory"),
     .figures = {R}},

    /* ---- failures of another kind, in the words of a failed allocation */
    {OTHER(ELSE, "cudaerrorillegaladdress")},
    {OTHER(ELSE, "cudaerrorlaunchfailure")},
    {OTHER(ELSE, "cudaerrorassert")},
    {OTHER(ELSE, "cudaerrornodevice")},
    {OTHER(ELSE, "cudaerrorinsufficientdriver")},
    {OTHER(ELSE, "cudaerrorinitializationerror")},

    /* ---- host memory: no matter for a GPU's allocator */
    {OTHER(HOST, "defaultcpuallocator:")},
    {OTHER(HOST, "alloc_cpu.cpp")},
    {OTHER(HOST, "bytesonhost:cuda_error_out_of_memory:outofmemory")},
    {OTHER(HOST, "bytesonhost:cuda_error_out_of_memory")},
    {OTHER(HOST, "memoryerror:unabletoallocate%foranarray")},
    {OTHER(HOST, "byallocatorcpu")},
    {OTHER(HOST, "byallocatormklcpu")},
    {OTHER(HOST, "bfcarenaforcpu")},
    {OTHER(HOST, "java.lang.outofmemoryerror")},
    {OTHER(HOST, "outofmemory:killedprocess")},
    {OTHER(HOST, "oom-kill:constraint")},
    {OTHER(HOST, "runtime:outofmemory:")},
    {OTHER(HOST, "outofmemory,mallocfailed")},
    {OTHER(HOST, "ranoutofhostmemory")},
    {OTHER(HOST, "iskilledbysignal:killed")},

    /* ---- settings; a message's own hint names one that may not be in force */
    {OTHER(HINT, "trysettingpytorch_cuda_alloc_conf=")},
    {OTHER(HINT, "trysettingpytorch_hip_alloc_conf=")},
    {OTHER(HINT, "trysettingpytorch_npu_alloc_conf=")},
    {.pattern = "trysettingpytorch_alloc_conf=",
     .role = FRAG_WORDING_HINT,
     .release = "PyTorch 2.10"},
    {OTHER(HINT, "environmentvariable'tf_gpu_allocator=")},
    {SETS(EXPANDABLE, "expandable_segments:true")},
    {SETS(EXPANDABLE, "expandable_segments=true")},
    {SETS(EXPANDABLE, "expandable_segments':true")},
    {SETS(EXPANDABLE, "expandable_segments\":true")},
    {SETS(MAX_SPLIT, "max_split_size_mb:#")},
    {SETS(MAX_SPLIT, "max_split_size_mb=#")},
    {SETS(GARBAGE_COLLECTION, "garbage_collection_threshold:")},
    {SETS(GARBAGE_COLLECTION, "garbage_collection_threshold=")},
    {SETS(ROUNDUP, "roundup_power2_divisions:")},
    {SETS(ROUNDUP, "roundup_power2_divisions=")},
    {SETS(ASYNC, "backend:cudamallocasync")},
    {SETS(ASYNC, "backend=cudamallocasync")},
    {SETS(ASYNC, "native:cudamallocasync")},
    {SETS(MPS_WATERMARK, "pytorch_mps_high_watermark_ratio=0")},
    {SETS(MPS_WATERMARK, "pytorch_mps_high_watermark_ratio:0")},
    {SETS(MPS_WATERMARK, "pytorch_mps_high_watermark_ratio'*0")},
    {SETS(MPS_WATERMARK, "pytorch_mps_high_watermark_ratio\"*0")},
    {SETS(XLA_NO_PREALLOCATE, "xla_python_client_preallocate=false")},
    {SETS(XLA_NO_PREALLOCATE, "xla_python_client_preallocate'*false")},
    {SETS(XLA_NO_PREALLOCATE, "xla_python_client_preallocate\"*false")},
    {SETS(XLA_FRACTION, "xla_python_client_mem_fraction")},
    {SETS(TF_ASYNC, "tf_gpu_allocator*cuda_malloc_async")},
    {SETS(TF_GROWTH, "allow_growth=true")},
    {SETS(TF_GROWTH, "tf_force_gpu_allow_growth=true")},
    {SETS(TF_GROWTH, "set_memory_growth(")},

    /* ---- any other program that prints the text of the runtime's error */
    {OPENS(UNKNOWN, "outofmemory"), .place = FRAG_WORDING_AS_ERROR},
};

const size_t frag_wording_count = sizeof frag_wordings / sizeof *frag_wordings;
