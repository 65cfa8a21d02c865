#include "messages/wordings.h"

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
#define SHOWS(scene_, pattern_)                                                                    \
    .pattern = pattern_, .role = FRAG_WORDING_SCENE, .scene = FRAG_SCENE_##scene_
#define HOST(says_, pattern_)                                                                      \
    .pattern = pattern_, .role = FRAG_WORDING_HOST, .says = FRAG_SAYS_##says_
#define SETS(setting_, pattern_)                                                                   \
    .pattern = pattern_, .role = FRAG_WORDING_SETTING, .setting = FRAG_SETTING_##setting_
#define CODE .place = FRAG_WORDING_AS_CODE
#define BARE .place = FRAG_WORDING_AT_START | FRAG_WORDING_AT_END

/* Sources: the messages themselves (tests/data/oom-messages names a thread for each) and, for
 * PyTorch, the releases named beside them. */
const frag_wording frag_wordings[] = {
    /* ---- PyTorch: what was asked */
    {OPENS(PYTORCH_ASYNC, "allocationondevice#wouldexceedallowedmemory"), .figures = {GPU}},
    {OPENS(PYTORCH_ASYNC, "allocationondevice"), BARE},
    {OPENS(PYTORCH, "gotanoom,unloadingallloadedmodels")}, /* ComfyUI */
    {OPENS(PYTORCH_MPS, "mpsbackendoutofmemory")},
    {OPENS(PYTORCH_MPS, "invalidbuffersize:%"), .figures = {R}, .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(PYTORCH_XPU, "cannotallocatememoryblockwithsizelargerthan%"), .figures = {L},
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
    {FIELD("%free)"), .figures = {F}},
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
    {TELLS("capacityof%ofwhich%isfree"), .figures = {T, F}},
    {FIELD("totalcapactyof%"), .figures = {T}},
    {FIELD("ofwhich%isfree"), .figures = {F}},
    {FIELD("process#has%memoryinuse"), .figures = {FRAG_CAPTURE_PROCESS_ID, FRAG_CAPTURE_PROCESS}},
    {FIELD("thisprocesshas%memoryinuse"), .figures = {FRAG_FIGURE_PROCESS}},
    {FIELD("with%allocatedinprivatepools"), .figures = {P}, .release = "PyTorch 2.5 or later"},
    {TELLS("%isallocatedbypytorch"), .figures = {A}},
    {TELLS("%isreservedbypytorchbutunallocated"), .figures = {I}},
    {FIELD("docs.pytorch.org/docs/stable/notes/cuda.html*optimizing"),
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
    {OPENS(UNKNOWN, "erroroutofmemoryatline#infile"), .figures = {NOT}}, /* bitsandbytes */
    {OPENS(UNKNOWN, "cudacustomallocatoroutofmemory[requestedspace:%"), .figures = {R}},
    {OPENS(UNKNOWN, "hipcustomallocatoroutofmemory[requestedspace:%"), .figures = {R}},
    {FIELD("[largestcontinuousfreespace:%"), .figures = {B}},
    {FIELD("[totalfreespace:%"), .figures = {F}},
    {OPENS(UNKNOWN, "memoryerror:cumem*failed:outofmemory")},
    {OPENS(UNKNOWN, "outofgpuandsharedhostmemory")},
    {OPENS(UNKNOWN, "nopoolhandlesallocationofsize#"), .figures = {R}}, /* CubeCL */
    {OPENS(UNKNOWN, "nomemorypoolbigenoughtoreserve#bytes"), .figures = {R}},
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
    {TELLS("stats:limit:#inuse:#"), .figures = {T, A}, .says = FRAG_SAYS_DUMP},
    {TELLS("client-requestedinuseinbin"), .says = FRAG_SAYS_DUMP},
    {OTHER(HARMLESS, "thecallerindicatesthatthisisnotafailure")},

    /* ---- JAX, XLA */
    {OPENS(JAX, "outofmemorywhiletryingtoallocate#bytes"), .figures = {R}},
    {OPENS(JAX, "outofmemorywhiletryingtoallocate%"), .figures = {R}},
    {OPENS(JAX, "outofmemoryallocating#bytes."), .figures = {R}},
    {OPENS(JAX, "ranoutofmemoryinmemoryspacehbm.used%of%hbm.exceededhbmcapacityby%"),
     .figures = {A, T, X}, .says = FRAG_SAYS_WHOLE},
    {OPENS(JAX, "ranoutofmemoryinmemoryspacehbm.used%of%"), .figures = {A, T},
     .says = FRAG_SAYS_WHOLE},
    {OPENS(JAX, "ranoutofmemoryinmemoryspace*.used%of%"), .figures = {R, L},
     .says = FRAG_SAYS_ON_CHIP},
    {OPENS(JAX, "scopedallocationwithsize%andlimit%exceededscopedvmemlimitby%"),
     .figures = {R, L, X}, .says = FRAG_SAYS_ON_CHIP},
    {FIELD("memcapacityby%"), .framework = FRAG_FRAMEWORK_JAX, .figures = {X}},
    {FIELD("%reservable"), .framework = FRAG_FRAMEWORK_JAX, .figures = {B}},
    {OPENS(JAX, "failedtoallocaterequestfor%"), .figures = {R}},
    {OPENS(JAX, "failedtoallocate#bytesfornewconstant"), .figures = {R}},
    {OPENS(JAX, "attemptingtoallocate%.thatwasnotpossible.thereare%free"), .figures = {R, F}},
    {FIELD("largestcontiguousregionoffreememoryis%"), .figures = {B}},
    {OPENS(JAX, "attemptingtoreserve%atthebottomofmemory.thatwasnotpossible.thereare%free"),
     .figures = {R, F}},
    {OPENS(JAX, "resource_exhausted:outofmemory")},

    /* ---- CuPy */
    {OPENS(CUPY, "outofmemoryallocating#bytes(allocatedsofar:#bytes,limitsetto:#bytes"),
     .figures = {R, A, L}},
    {OPENS(CUPY, "outofmemoryallocating#bytes(allocatedsofar:#bytes"), .figures = {R, A}},
    {OPENS(CUPY, "outofmemorytoallocate#bytes(total#bytes,limitsetto#bytes"), .figures = {R, V, L}},
    {OPENS(CUPY, "outofmemorytoallocate#bytes(total#bytes"), .figures = {R, V}},
    {OPENS(CUPY, "outofmemorytoallocate#bytes"), .figures = {R}},

    /* ---- RMM */
    {OPENS(RMM, "maximumpoolsizeexceeded(failedtoallocate%)"), .figures = {R},
     .says = FRAG_SAYS_POOL_FULL},
    {OPENS(RMM, "maximumpoolsizeexceeded"), .says = FRAG_SAYS_POOL_FULL},
    {OPENS(RMM, "[upstream%][failuremaximumpoolsizeexceeded]"), .figures = {R},
     .says = FRAG_SAYS_POOL_FULL},
    {OPENS(RMM, "[upstream%][failuremaxpoolsizeexceeded]"), .figures = {R},
     .says = FRAG_SAYS_POOL_FULL},
    {OPENS(RMM, "[upstream%][failure"), .figures = {R}},
    {OPENS(RMM, "limiting_resource_adaptor*exceededmemorylimit"), .says = FRAG_SAYS_POOL_FULL},
    {OPENS(RMM, "std::bad_alloc:out_of_memory:cudaerror")},
    {OPENS(RMM, "std::bad_alloc:cudaerror")},
    {OPENS(UNKNOWN, "badallocation:cudaerrormemoryallocation")},
    {OPENS(UNKNOWN, "memoryerror:badallocation:cudaerrormemoryallocation")},
    {OPENS(RMM, "std::bad_alloc:out_of_memory:rmmfailure")},
    {OPENS(RMM, "rmm_error_out_of_memory"), CODE},
    {OPENS(RMM, "(failedtoallocate%)"), .figures = {R}},
    {FIELD("current/max/trysize=%,%,%"), .figures = {V, L, NOT}},
    {OPENS(RMM, "devicestoreexhausted,unabletoallocate#bytes"), .figures = {R}}, /* Spark */
    {FIELD("totalrmmallocatedis#bytes"), .framework = FRAG_FRAMEWORK_RMM, .figures = {A}},

    /* ---- ggml, llama.cpp */
    {OPENS(GGML, "allocating%ondevice#:cudamallocfailed:outofmemory"), .figures = {R, GPU}},
    {OPENS(GGML, "allocating%ondevice#:cudamallocfailed"), .figures = {R, GPU}},
    {OPENS(UNKNOWN, "cudamallocfailed:outofmemory")},
    {OPENS(GGML, "failedtoallocatecuda#bufferofsize#"), .figures = {GPU, R}},
    {OPENS(GGML, "failedtoallocaterocm#bufferofsize#"), .figures = {GPU, R}},
    {OPENS(GGML, "failedtoallocatevulkan#bufferofsize#"), .figures = {GPU, R}},
    {OPENS(GGML, "failedtoallocatemetalbufferofsize#"), .figures = {R}},
    {OPENS(GGML, "devicememoryallocationofsize#failed"), .figures = {R}},
    {OPENS(GGML, "size#islargerthanbuffermaximumof#"), .figures = {R, L},
     .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(UNKNOWN, "kiogpucommandbuffercallbackerroroutofmemory")},
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

    /* ---- TensorRT and TensorRT-LLM */
    {OPENS(TENSORRT, "errorcode2:outofmemory(requestedsizewas#bytes"), .figures = {R}},
    {OPENS(TENSORRT, "errorcode2:outofmemory")},
    {OPENS(TENSORRT, "requestedamountofmemory(#bytes)couldnotbeallocated"), .figures = {R}},
    {OPENS(TENSORRT, "requestedamountofgpumemory(#bytes)couldnotbeallocated"), .figures = {R}},
    {OPENS(TENSORRT, "outofmemoryerrorin")},
    {OPENS(TENSORRT, "outofmemoryerrorduringgetbesttactic")},
    {OTHER(HARMLESS, "tacticsdonothavesufficientworkspacememory")},
    {OTHER(HARMLESS, "devicememoryisinsufficienttousetactic")},
    {OTHER(HARMLESS, "tacticdevicerequest:%available:%"), .figures = {R, F}},
    {OTHER(HARMLESS, "skippingtactic*duetoinsufficientmemoryonrequestedsizeof#"), .figures = {R}},
    {OTHER(HARMLESS, "skippingtactic*duetooommemory")},
    {OPENS(TENSORRT_LLM, "cudaruntimeerrorin*:outofmemory(/")},
    {HOST(PINNED, "cudaruntimeerrorin::cudahostalloc*:outofmemory(/")},
    {HOST(PINNED, "cudaruntimeerrorin::cudamallochost*:outofmemory(/")},

    /* ---- Ascend: MindSpore, CANN */
    {OPENS(ASCEND, "memory_allocation_failure(el0004)")},
    {FIELD("rtmallocfail,*size:#"), .framework = FRAG_FRAMEWORK_ASCEND, .figures = {R}},
    {OPENS(ASCEND, "allocsize:#ismorethantotalmemsize:#"), .figures = {R, T}},
    {OPENS(ASCEND, "totalusedmemstatistics:#plus*allocsize:#ismorethantotalmemsize:#"),
     .figures = {A, R, T}},
    {OPENS(ASCEND, "device(id:#)memoryisn'tenough"), .figures = {GPU}},
    {FIELD("allocsize:%"), .framework = FRAG_FRAMEWORK_ASCEND, .figures = {R}},
    {OPENS(ASCEND, "outofmemory!!!requestmemorysize:%"), .figures = {R}},
    {FIELD("devicehbmmemorysize:%"), .framework = FRAG_FRAMEWORK_ASCEND, .figures = {T}},
    {FIELD("devicefreesize:%"), .framework = FRAG_FRAMEWORK_ASCEND, .figures = {F}},

    /* ---- PhysX, hashcat, Habana, Ollama, Blender, MXNet, Caffe */
    {OPENS(PHYSX, "pxgcudadevicememoryallocatorfailtoallocatememory#bytes"), .figures = {R}},
    {HOST(PINNED, "pxgcudahostmemoryallocatorfailtoallocatememory#bytes"), .figures = {R}},
    {OPENS(HASHCAT, "notenoughallocatabledevicememoryforthisattack"), .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(HASHCAT, "doesnotprovideenoughallocatabledevice-memorytohandlethisattack"),
     .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(HABANA, "allocationfailedforsize::#"), .figures = {R}},
    {OPENS(OLLAMA, "memorylayoutcannotbeallocated")},
    {OPENS(MXNET, "pooled_storage_manager*cudamallocfailed:outofmemory")},
    {OPENS(MXNET, "pooled_storage_manager*cudamallocretryfailed:outofmemory")},
    {OPENS(CAFFE, "checkfailed:error==cudasuccess(2vs.0)")},
    {OPENS(BLENDER, "systemisoutofgpumemory")},

    /* ---- the driver's own words, whoever passes them on */
    {OPENS(UNKNOWN, "failedtoallocate*(#bytes)fromdevice:cuda_error_out_of_memory"),
     .figures = {R}},
    {OPENS(UNKNOWN, "failedtoallocate*(#bytes)fromdevice:resource_exhausted"), .figures = {R}},
    {OPENS(UNKNOWN, "failedtoallocate*(#bytes)fromdevice:hip_error_outofmemory"), .figures = {R}},
    {OPENS(UNKNOWN, "failedtoallocate%fromdevice:cuda_error_out_of_memory"), .figures = {R}},
    {OPENS(UNKNOWN, "failedtoallocate%fromdevice:hip"), .figures = {R}},
    {OPENS(UNKNOWN, "memoryallocationerroronworker#:"), .figures = {NOT}},
    {OPENS(UNKNOWN, "failedtoallocateamemoryregionof#bytes"), .figures = {R}}, /* Kaldi */
    {FIELD("memoryinfo:free:%,used:%,total:%"), .figures = {F, NOT, T}},
    {OPENS(UNKNOWN, "memoryerror:allocationof%failedon*.used:%"), .figures = {R, A}}, /* tinygrad */
    {OPENS(UNKNOWN, "memoryerror:cannotallocate%:nomemoryisavailable"), .figures = {R}},
    {OPENS(UNKNOWN, "allocate:#bytesrequested;status=#(outofmemory)"),
     .figures = {R, NOT}}, /* NVIDIA's Fortran and OpenACC */
    {OPENS(UNKNOWN, "outofmemoryallocating#bytesofdevicememory"), .figures = {R}},
    {FIELD("total/freecudamemory:#/#"), .figures = {T, F}},
    {OPENS(UNKNOWN, "theavailablesinglegpumemoryis%,whichislessthanthesumofmodelweightsize(%)and"
                    "temporarybuffersize(%)"),
     .figures = {L, A, R}}, /* MLC LLM */
    {OPENS(UNKNOWN, "nv_enc_err_out_of_memory")},
    {OPENS(UNKNOWN, "bufferoverflowwhenallocatingmemoryfor*withsize#andalignment#,butonly#bytes"
                    "availableinalignedallocator"),
     .figures = {R, NOT, L}}, /* FlashInfer's workspace */
    {FIELD("-freememory:#"), .figures = {F}},
    {FIELD("-freememory:%"), .figures = {F}},
    {FIELD("-requestedmemory:#"), .figures = {R}},
    {FIELD("-requestedmemory:%"), .figures = {R}},
    {OPENS(CUDA_JL, "outofgpumemorytryingtoallocate%"), .figures = {R}},
    {FIELD("effectivegpumemoryusage:*(%/%)"), .framework = FRAG_FRAMEWORK_CUDA_JL,
     .figures = {FRAG_FIGURE_PROCESS, T}},
    {FIELD("cudaallocatorusage:%(cappedat%)"), .figures = {A, L}},
    {FIELD("cudaallocatorusage:%"), .figures = {A}},
    {FIELD("memorypoolusage:%(%reserved)"), .figures = {A, V}},
    {FIELD("memorypoolusage:%(%allocated,%cached)"), .figures = {V, A, I}},
    {FIELD("usage:%(%allocated,%cached)"), .figures = {NOT, NOT, NOT}},
    {FIELD("memorylimit:soft=%,hard=%"), .figures = {NOT, L}},
    {OTHER(HARMLESS, "cudamemoryallocationfailed;attemptingtofreeupmemory")},
    {OPENS(UNKNOWN, "cuda:outofmemory"), .place = FRAG_WORDING_AT_END},
    {OPENS(UNKNOWN, "cuda_error_out_of_memory"), CODE},
    {OPENS(UNKNOWN, "cudaerrormemoryallocation"), CODE},
    {OPENS(UNKNOWN, "thrust::system::detail::bad_alloc")},
    /* Thrust's words; the host's own have nothing behind the name. */
    {OPENS(UNKNOWN, "std::bad_alloc:outofmemory")},
    {OPENS(UNKNOWN, "memoryerror:std::bad_alloc:outofmemory")},
    {OPENS(UNKNOWN, "hiperroroutofmemory"), CODE},
    {OPENS(UNKNOWN, "hip_error_out_of_memory"), CODE},
    {OPENS(UNKNOWN, "hip_error_outofmemory"), CODE},
    {OPENS(UNKNOWN, "hsa_status_error_out_of_resources"), CODE},
    {OPENS(UNKNOWN, "cl_mem_object_allocation_failure"), CODE},
    {OPENS(UNKNOWN, "cl_invalid_buffer_sizewhencallingclcreatebufferwithbuffersize#"),
     .figures = {R}, .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(UNKNOWN, "cl_invalid_buffer_size"), CODE, .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(UNKNOWN, "allocationsizeis#bytesfromheap#,butsizeofthatheapisonly#bytes"),
     .figures = {R, NOT, T}},
    {OPENS(UNKNOWN, "exceededmaxsizeofmemoryobjectallocation:requested#bytes"), .figures = {R},
     .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(UNKNOWN,
           "attemptingtoallocate#byteswhichisgreaterthanthemaximumallowedbuffersizeof#bytes"),
     .figures = {R, L}, .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(UNKNOWN, "attemptingtoallocate#byteswhichisgreaterthanthemaximumallowedbuffersize"),
     .figures = {R}, .says = FRAG_SAYS_BLOCK_MAX},
    {OPENS(UNKNOWN, "notenoughmemorytohandle#prefilltokens"), .figures = {NOT}},
    {OPENS(UNKNOWN, "notenoughmemorytohandle#totaltokens"), .figures = {NOT}},
    {OPENS(UNKNOWN, "cudaerror:2[cudamalloc"), .says = FRAG_SAYS_LIBRARY},
    {OPENS(UNKNOWN, "cudaerror:2[cumemalloc"), .says = FRAG_SAYS_LIBRARY},
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
    {OTHER(HOST, "defaultcpuallocator:can'tallocatememory:youtriedtoallocate#bytes"),
     .figures = {R}},
    {OTHER(HOST, "defaultcpuallocator:notenoughmemory:youtriedtoallocate#bytes"), .figures = {R}},
    {HOST(ON_CHIP, "outofresource:sharedmemory")},
    {HOST(ON_CHIP, "outofresource:*memory,required:#,hardwarelimit:#"), .figures = {R, L}},
    {HOST(ON_CHIP, "outofresource:sharedmemory,required:#,hardwarelimitation:#"),
     .figures = {R, L}},
    {HOST(ON_CHIP, "outofresource:sharedmemoryrequired:#hardwarelimit:#"), .figures = {R, L}},
    {HOST(ON_CHIP, "insufficientsharedmemoryavailableonthegpu")},
    {HOST(ON_CHIP, "usestoomuchshareddata(#bytes,#max)"), .figures = {R, L}},
    {HOST(ON_CHIP, "usestoomuchshareddata(%,%max)"), .figures = {R, L}},
    {HOST(ON_CHIP, "localmemorylimitexceeded(#)"), .figures = {R}}, /* LLVM */
    {HOST(ON_CHIP, "localmemory(#)exceedslimit(#)"), .figures = {R, L}},
    {HOST(SHM, "iskilledbysignal:buserror")},
    {HOST(SHM, "workersareoutofsharedmemory")},
    {HOST(SHM, "unabletoallocatesharedmemory(shm)")},
    {HOST(SHM, "unabletowritetofile</torch_")},
    {HOST(SHM, "failedtoextend/dev/shm/*to#bytes"), .figures = {R}}, /* NCCL */
    {HOST(DISK, "nospaceleftondevice")},
    {HOST(DISK, "diskquotaexceeded")},
    {HOST(KILLED, "line#:#killed"), .figures = {NOT, NOT}}, /* bash */
    {HOST(KILLED, "[1]#killed"), .figures = {NOT}},         /* shells, of a job */
    {HOST(KILLED, "[1]+killed")},
    {HOST(KILLED, "zsh:killed")},
    {HOST(KILLED, "srun:error:*:task#:outofmemory"), .figures = {NOT}},
    {HOST(KILLED, "oom-killevent")},
    {HOST(KILLED, "oom_killevent")},
    {HOST(KILLED, "invokedoom-killer")},
    {HOST(KILLED, "memorycgroupoutofmemory")},
    {HOST(KILLED, "memorycgroupoutofmemory:killedprocess#(*)total-vm:%,anon-rss:%"),
     .figures = {NOT, NOT, FRAG_FIGURE_PROCESS}},
    {HOST(KILLED, "bythecgroupout-of-memoryhandler")},
    {HOST(KILLED, "outofmemory:killprocess")},
    {HOST(KILLED, "beenoomkilled")},
    {HOST(KILLED, "reason:oomkilled")},
    {HOST(KILLED, "exceededmemorylimit(#>#)"), .figures = {NOT, NOT}},
    {HOST(KILLED, "exceededstepmemorylimit")},
    {HOST(KILLED, "exceededjobmemorylimit")},
    {HOST(KILLED, "term_memlimit")},
    {HOST(KILLED, "lsfmemoryusagelimit")},
    {HOST(KILLED, "jobhasgoneovermemorylimit")},
    {HOST(KILLED, "thenodewaslowonresource:memory")},
    {OTHER(HOST, "pagingfileistoosmall")},
    {OTHER(HOST, "swaptoosmall")},
    {HOST(KILLED, "taskwaskilledduetothenoderunninglowonmemory")},
    {HOST(PINNED, "failedtoallocate%ofpinnedmemory"), .figures = {R}},
    {HOST(PINNED, "failedtoallocatepinnedmemory")},
    {HOST(PINNED, "pinnedhostmemoryofsize:#"), .figures = {R}},
    {.pattern = "memoryerror",
     .role = FRAG_WORDING_HOST,
     .place = FRAG_WORDING_AT_START | FRAG_WORDING_AT_END},
    {.pattern = "std::bad_alloc", .role = FRAG_WORDING_HOST, .place = FRAG_WORDING_AT_END},
    {OTHER(HOST, "errno12]cannotallocatememory")},
    {OTHER(HOST, "modelrequiresmoresystemmemory(%)thanisavailable(%)"), .figures = {R, F}},
    {OTHER(HOST, "modelrequesttoolargeforsystem")},
    {OTHER(HOST, "notenoughspaceinthecontext'smemorypool(needed#,available#)"), .figures = {R, F}},
    {OTHER(HOST, "unabletoallocatecpubuffer")},
    {OTHER(HOST, "failedtoallocatecpubufferofsize#"), .figures = {R}},
    {OTHER(HOST, "cpu_buffer_type_alloc_buffer:failedtoallocatebufferofsize#"), .figures = {R}},
    {OTHER(HOST, "alloc_cpu.cpp")},
    {OTHER(HOST, "bytesonhost:cuda_error_out_of_memory:outofmemory")},
    {OTHER(HOST, "bytesonhost:cuda_error_out_of_memory")},
    {OTHER(HOST, "unabletoallocatearraywithshape")},
    {OTHER(HOST, "unabletoallocate%foranarray"), .figures = {R}},                       /* NumPy */
    {OTHER(HOST, "outofmemoryallocating#bytesafteratotalof#bytes"), .figures = {R, A}}, /* GNU */
    {OTHER(HOST, "allowedmemorysizeof#bytesexhausted(triedtoallocate#bytes)"),
     .figures = {L, R}},                          /* PHP */
    {.pattern = "memoryallocationof#bytesfailed", /* Rust */
     .role = FRAG_WORDING_HOST,
     .figures = {R},
     .place = FRAG_WORDING_AT_START | FRAG_WORDING_AT_END},
    {OTHER(HOST, "cannotallocatevectorofsize%"), .figures = {R}}, /* R */
    {OTHER(HOST, "rayoutofmemoryerror")},
    {OTHER(HOST, "byallocatorcpu")},
    {OTHER(HOST, "byallocatormklcpu")},
    {OTHER(HOST, "bfcarenaforcpu")},
    {OTHER(HOST, "java.lang.outofmemoryerror")},
    {HOST(KILLED, "outofmemory:killedprocess")},
    {HOST(KILLED, "outofmemory:killedprocess#(*)total-vm:%,anon-rss:%"),
     .figures = {NOT, NOT, FRAG_FIGURE_PROCESS}},
    {HOST(KILLED, "oom-kill:constraint")},
    {OTHER(HOST, "runtime:outofmemory:")},
    {OTHER(HOST, "outofmemory,mallocfailed")},
    {OTHER(HOST, "ranoutofhostmemory")},
    {HOST(KILLED, "iskilledbysignal:killed")},

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

    /* ---- what the program was doing: moving or loading a model */
    {SHOWS(LOADING, "self._apply(convert")},
    {SHOWS(LOADING, "module._apply(fn")},
    {SHOWS(LOADING, "pipe.to(")},
    {SHOWS(LOADING, "pipeline.to(")},
    {SHOWS(LOADING, "model.to(")},
    {SHOWS(LOADING, "model.cuda(")},
    {SHOWS(LOADING, "from_pretrained(")},
    {SHOWS(LOADING, "set_module_tensor_to_device(")},
    {SHOWS(LOADING, "load_state_dict(")},
    {SHOWS(LOADING, "loadingcheckpointshards")},
    {SHOWS(MANY, "torchrun")},
    {SHOWS(MANY, "local_rank")},
    {SHOWS(MANY, "[rank")},
    {SHOWS(MANY, "torch/distributed/")},
    {SHOWS(MANY, "worker_tp")},

    /* ---- any other program that prints the text of the runtime's error */
    {OPENS(UNKNOWN, "outofmemory"), .place = FRAG_WORDING_AS_ERROR},
    {OPENS(UNKNOWN, "gpuoutofmemory"), .place = FRAG_WORDING_AS_ERROR},
};

const size_t frag_wording_count = sizeof frag_wordings / sizeof *frag_wordings;
