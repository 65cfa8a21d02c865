"""What guides say, and the settings that judge it. A claim: its sentence; the peak it is about (allocated, reserved, of the whole
run or "settled": allocated in the last phase; "time": of a step, an estimate; "end": whether it runs out of memory); the change in percent that would bear it out; pairs of settings, before and after; why it is so.

A setting is "MODEL.json KNOB=VALUE..." for program.py of the generator, with conf=SETTINGS for PYTORCH_CUDA_ALLOC_CONF and gpu=CARD, or
"KIND KEY=VALUE..." for claims/program.py, which the generator has no family or knob for."""

GPT2, BERT, QWEN2 = "gpt2-small.json", "bert-large.json", "qwen2-0.5b.json"
LLAMA2, LLAMA2_13B = "llama2-7b.json", "llama2-13b.json"
QLORA = "precision=amp-bf16 lora_rank=16 quantize=nf4-double"
VARYING = f"{GPT2} batch=4 tokens=200,900,512,64 steps=8 precision=amp-bf16"
FIXED = f"{GPT2} batch=8 tokens=512"

CLAIMS = [
    ("Halving the batch halves the memory.", "allocated", (-55, -45), [
        (f"{GPT2} batch=16 tokens=512", f"{GPT2} batch=8 tokens=512"),
        (f"{GPT2} batch=2 tokens=128", f"{GPT2} batch=1 tokens=128"),
        (f"{BERT} batch=8 tokens=384", f"{BERT} batch=4 tokens=384"),
    ], "Activations are halved, weights and the optimizer's averages are not: the larger the batch, the nearer to half."),
    ("Accumulating gradients gives the large batch for the memory of the small one.", "allocated", (-5, 5), [
        (f"{GPT2} batch=2 tokens=128", f"{GPT2} batch=2 tokens=128 accumulate=4"),
        (f"{GPT2} batch=8 tokens=512", f"{GPT2} batch=8 tokens=512 accumulate=4"),
        (f"{BERT} batch=4 tokens=384", f"{BERT} batch=4 tokens=384 accumulate=4"),
    ], "From the second part of a batch on, the gradients of the first are there in the forward pass too, which adds the size of the weights."),
    ("Mixed precision saves 30 to 50 %.", "allocated", (-50, -30), [
        (f"{GPT2} batch=1 tokens=128", f"{GPT2} batch=1 tokens=128 precision=amp-bf16"),
        (f"{GPT2} batch=8 tokens=512", f"{GPT2} batch=8 tokens=512 precision=amp-bf16"),
        (f"{BERT} batch=8 tokens=384", f"{BERT} batch=8 tokens=384 precision=amp-bf16"),
    ], "Weights, gradients and averages stay in fp32, and autocast adds copies of the weights in 16 bits; only some of the activations are halved."),
    ("Weights in 16 bits halve the memory.", "allocated", (-55, -45), [
        (f"{GPT2} batch=1 tokens=128", f"{GPT2} batch=1 tokens=128 precision=bf16"),
        (f"{GPT2} batch=8 tokens=512", f"{GPT2} batch=8 tokens=512 precision=bf16"),
        (f"{GPT2} batch=8 tokens=512 task=evaluate", f"{GPT2} batch=8 tokens=512 task=evaluate precision=bf16"),
    ], "All that lasts is halved. The loss is computed in fp32 from a copy of the logits, which is the larger share the larger the batch."),
    ("Gradient checkpointing saves 50 to 70 %.", "allocated", (-70, -50), [
        (f"{GPT2} batch=1 tokens=128", f"{GPT2} batch=1 tokens=128 checkpoint=blocks"),
        (f"{GPT2} batch=8 tokens=512", f"{GPT2} batch=8 tokens=512 checkpoint=blocks"),
        (f"{BERT} batch=8 tokens=384", f"{BERT} batch=8 tokens=384 checkpoint=blocks"),
    ], "It saves activations only: nothing where weights and averages are the peak."),
    ("Attention that keeps its scores (eager) takes memory that grows with the square of the length; scaled_dot_product_attention saves 30 to 50 %.", "allocated", (-50, -30), [
        (f"{GPT2} batch=4 tokens=1024 attention=eager precision=bf16", f"{GPT2} batch=4 tokens=1024 precision=bf16"),
        (f"{GPT2} batch=16 tokens=128 attention=eager precision=bf16", f"{GPT2} batch=16 tokens=128 precision=bf16"),
        (f"{BERT} batch=8 tokens=384 attention=eager", f"{BERT} batch=8 tokens=384"),
    ], "Scores are batch x heads x length x length for each layer. Beside a short sequence's other activations they are little, beside a long one's they are most."),
    ("Gradient checkpointing costs 20 to 30 % of time.", "time", (20, 30), [
        (FIXED, f"{FIXED} checkpoint=blocks"),
        (f"{BERT} batch=8 tokens=384", f"{BERT} batch=8 tokens=384 checkpoint=blocks"),
        (f"{QWEN2} batch=2 tokens=1024 precision=bf16 lora_rank=16", f"{QWEN2} batch=2 tokens=1024 precision=bf16 lora_rank=16 checkpoint=blocks"),
    ], "An estimate from floating-point operations ([plan](plan.md#time)), not a measurement: a second forward pass through the blocks, less where the head is large, more with LoRA, whose backward is short."),
    ("Checkpoints around √n of n blocks save more than around each.", "allocated", (-100, -1), [
        (f"{FIXED} checkpoint=blocks", f"{FIXED} checkpoint=sqrt"),
        (f"{BERT} batch=8 tokens=384 checkpoint=blocks", f"{BERT} batch=8 tokens=384 checkpoint=sqrt"),
    ], "Fewer inputs are kept, but the activations of √n blocks come back at a time. Inputs of blocks are small beside what a block saves, so that there is little to win."),
    ("Selective checkpointing saves 20 % or more.", "allocated", (-100, -20), [
        (FIXED, f"{FIXED} checkpoint=selective"),
        (f"{BERT} batch=8 tokens=384", f"{BERT} batch=8 tokens=384 checkpoint=selective"),
    ], "What products of matrices and attention make is kept, the rest is made anew; `checkpoint=blocks` saves more."),
    ("torch.no_grad() saves 30 to 50 % in evaluation.", "allocated", (-50, -30), [
        (f"{GPT2} batch=8 tokens=512 task=evaluate no_grad=false", f"{GPT2} batch=8 tokens=512 task=evaluate"),
        (f"{BERT} batch=8 tokens=384 task=evaluate no_grad=false", f"{BERT} batch=8 tokens=384 task=evaluate"),
    ], "It saves all activations that backward would need, which is more than guides say."),
    ("LoRA needs a third of the memory at most.", "allocated", (-100, -66), [
        (f"{QWEN2} batch=1 tokens=64 precision=bf16", f"{QWEN2} batch=1 tokens=64 precision=bf16 lora_rank=16"),
        (f"{QWEN2} batch=2 tokens=1024 precision=bf16", f"{QWEN2} batch=2 tokens=1024 precision=bf16 lora_rank=16"),
    ], "Gradients and averages of the frozen weights go; their activations stay, and with a long batch they are the most of it."),
    ("QLoRA needs half of the memory of LoRA at most.", "allocated", (-100, -50), [
        (f"{LLAMA2} batch=1 tokens=64 precision=bf16 lora_rank=16", f"{LLAMA2} batch=1 tokens=64 {QLORA}"),
        (f"{LLAMA2} batch=4 tokens=512 precision=bf16 lora_rank=16", f"{LLAMA2} batch=4 tokens=512 {QLORA}"),
        (f"{QWEN2} batch=2 tokens=1024 precision=bf16 lora_rank=16", f"{QWEN2} batch=2 tokens=1024 {QLORA}"),
    ], "It holds where the weights are the most of it. What is not quantised is in fp32 then, hidden states too, so that with a long batch QLoRA needs more than LoRA."),
    ("QLoRA trains 7 billion weights on 12 GB, 13 billion on 24 GB.", "allocated", (-100, 10000), [
        (f"{LLAMA2} batch=1 tokens=512 precision=bf16 lora_rank=16 gpu=rtx3060", f"{LLAMA2} batch=1 tokens=512 {QLORA} gpu=rtx3060"),
        (f"{LLAMA2_13B} batch=1 tokens=1024 precision=bf16 lora_rank=16 gpu=rtx3090", f"{LLAMA2_13B} batch=1 tokens=1024 {QLORA} gpu=rtx3090"),
    ], "One sequence at a time, and no checkpointing is needed for it. Out of memory: what was allocated when it ran out."),
    ("SGD in place of AdamW saves a third or more.", "allocated", (-100, -33), [
        (f"{GPT2} batch=1 tokens=128", f"{GPT2} batch=1 tokens=128 optimizer=sgd"),
        (f"{GPT2} batch=8 tokens=512", f"{GPT2} batch=8 tokens=512 optimizer=sgd"),
    ], "It saves two numbers a weight, whatever the batch."),
    ("zero_grad(set_to_none=True) saves memory.", "allocated", (-100, -1), [
        (f"{GPT2} batch=1 tokens=128 keep_gradients=true", f"{GPT2} batch=1 tokens=128"),
        (f"{GPT2} batch=8 tokens=512 keep_gradients=true", f"{GPT2} batch=8 tokens=512"),
    ], "It saves the gradients in the forward pass: nothing where the peak is at the optimizer's step, which needs them."),
    ("torch.cuda.empty_cache() every step lowers what is reserved.", "reserved", (-100, -1), [
        (FIXED, f"{FIXED} empty_cache=1"),
        (VARYING, f"{VARYING} empty_cache=1"),
    ], "What is taken anew in the next step is nearly as much as was given back; and before it fails, PyTorch gives its cached segments back by itself."),
    ("max_split_size_mb:128 cures fragmentation.", "reserved", (-100, -1), [
        (FIXED, f"{FIXED} conf=max_split_size_mb:128"),
        (VARYING, f"{VARYING} conf=max_split_size_mb:128"),
    ], "Larger blocks are no longer split, so that each is reused only for requests of nearly its size."),
    ("expandable_segments:True cures fragmentation.", "reserved", (-100, -1), [
        (FIXED, f"{FIXED} conf=expandable_segments:True"),
        (VARYING, f"{VARYING} conf=expandable_segments:True"),
    ], "One segment grows by what is needed, so that no rest of a segment lies idle."),
    ("In-place activations save memory.", "allocated", (-100, -1), [
        ("resnet batch=8 inplace=false", "resnet batch=8 inplace=true"),
        ("gather batch=8 outputs=cpu inplace=false", "gather batch=8 outputs=cpu"),
    ], "In training a ReLU keeps its output and a batch norm its input, in place or not; the tensor between them is gone before the peak, and in evaluation too."),
    ("A running sum of losses without .item() leaks memory in training.", "allocated", (5, 10000), [
        ("resnet batch=4 sum=number", "resnet batch=4 sum=tensor"),
    ], "backward() has released what the graph of each loss kept; the sum holds on to a few numbers."),
    ("A running sum of losses without .item() leaks memory in evaluation with gradients on.", "allocated", (5, 10000), [
        ("graph batch=4 sum=number", "graph batch=4 sum=tensor"),
    ], "Where backward() never runs, the sum keeps the activations of all its batches."),
    ("Reference cycles leak memory until Python collects them.", "allocated", (5, 10000), [
        (f"{GPT2} batch=2 tokens=128 steps=8", f"{GPT2} batch=2 tokens=128 steps=8 leak=cycles"),
        (f"{GPT2} batch=2 tokens=128 steps=8", f"{GPT2} batch=2 tokens=128 steps=8 leak=cycles collect=1"),
    ], "Logits, keys and values of each batch stay. With `gc.collect()` after each step they do not add up, and nothing is lost beside what a name `outputs` keeps."),
    ("Outputs that are collected should be moved to the CPU.", "allocated", (-100, -1), [
        ("gather batch=8 outputs=gpu", "gather batch=8 outputs=cpu"),
        ("logits batch=4 tokens=256 outputs=gpu", "logits batch=4 tokens=256 outputs=cpu"),
    ], "Logits of a language model are as large as its vocabulary for each token, and add up. Outputs of a classifier are small beside the activations of one batch; what counts is their number times their size."),
    ("del of the outputs before the next batch saves memory.", "allocated", (-100, -1), [
        ("held batch=8 tokens=512 held=true", "held batch=8 tokens=512 held=false"),
    ], "The name keeps the last outputs until the next are there; the peak comes after that."),
    ("del of the loss before the next batch saves memory in evaluation with gradients on.", "allocated", (-100, -1), [
        (f"{FIXED} task=evaluate no_grad=false", f"{FIXED} task=evaluate no_grad=false del=true"),
    ], "The last loss holds on to all activations of its batch while those of the next are made."),
    ("Cross-entropy in chunks saves memory.", "allocated", (-100, -1), [
        (f"{GPT2} batch=1 tokens=128", f"{GPT2} batch=1 tokens=128 loss=chunked"),
        (FIXED, f"{FIXED} loss=chunked"),
        (f"{QWEN2} batch=2 tokens=1024 precision=amp-bf16 checkpoint=blocks", f"{QWEN2} batch=2 tokens=1024 precision=amp-bf16 checkpoint=blocks loss=chunked"),
    ], "Logits and what the loss makes of them are there for 1,024 tokens at a time; nothing is saved where the optimizer's step is the peak."),
    ("DoRA takes no more memory than LoRA.", "allocated", (-5, 5), [
        (f"{FIXED} lora_rank=8", f"{FIXED} lora_rank=8 lora_dora=true"),
        (f"{QWEN2} batch=2 tokens=1024 precision=bf16 lora_rank=16", f"{QWEN2} batch=2 tokens=1024 precision=bf16 lora_rank=16 lora_dora=true"),
    ], "Each adapted layer keeps its result and that of its adapter for the gradient of its magnitudes, in fp32."),
    ("Offloading activations to the CPU saves 50 % or more.", "allocated", (-100, -50), [
        ("offload batch=8 tokens=512 offload=false", "offload batch=8 tokens=512 offload=true"),
    ], "torch.autograd.graph.save_on_cpu: weights that backward needs are copied as well, and the loss needs its logits on the card."),
    ("Offloading the optimizer to the CPU saves half or more.", "allocated", (-100, -50), [
        (f"{GPT2} batch=1 tokens=128", f"{GPT2} batch=1 tokens=128 offload=optimizer"),
        (FIXED, f"{FIXED} offload=optimizer"),
        (f"{QWEN2} batch=1 tokens=64 precision=bf16", f"{QWEN2} batch=1 tokens=64 precision=bf16 offload=optimizer,gradients"),
    ], "Two numbers a weight go, and AdamW's temporaries with them: with a short batch that is the most of it, with a long one activations are. With gradients gone too, as soon as they are there, little but the weights is left."),
    ("Offloading the weights to the CPU lets a model run that the card does not hold.", "allocated", (-100, -50), [
        (f"{LLAMA2} batch=1 tokens=512 precision=bf16 task=evaluate gpu=rtx3060", f"{LLAMA2} batch=1 tokens=512 precision=bf16 task=evaluate offload=parameters gpu=rtx3060"),
    ], "Each layer's weights are there only while it runs (`accelerate.cpu_offload`). All of them cross the bus for each pass, which takes half a second at 25 GB/s, and so long for each token of an answer."),
    ("Pruning half of the weights saves memory.", "allocated", (-100, -5), [
        (f"{GPT2} batch=1 tokens=128", f"{GPT2} batch=1 tokens=128 prune=0.5"),
        (f"{FIXED} task=evaluate", f"{FIXED} task=evaluate prune=0.5"),
    ], "torch.nn.utils.prune keeps the weight, a mask of its size, and their product. Only layers that become narrower need less."),
    ("Weights in 8 bits take half of 16 bits.", "settled", (-52, -48), [
        ("linear weights=fp16 batch=1", "linear weights=int8 batch=1"),
    ], "As bitsandbytes has them, once loaded."),
    ("Weights in 4 bits take a quarter of 16 bits.", "settled", (-77, -72), [
        ("linear weights=fp16 batch=1", "linear weights=nf4 batch=1"),
    ], "As bitsandbytes has them, once loaded, with their scales; the embedding and the head of a model stay in 16 bits."),
    ("A second GPU halves the memory of each (DataParallel).", "allocated", (-55, -45), [
        ("parallel batch=64 cards=1", "parallel batch=64 cards=2"),
        (FIXED, f"{GPT2} batch=8 tokens=512 parallel=dp"),
    ], "Of the first card, which holds the averages and gathers the outputs; weights are on both. Outputs of a language model are logits of all tokens."),
    ("A second GPU halves the memory of each (DistributedDataParallel).", "allocated", (-55, -45), [
        (FIXED, f"{GPT2} batch=4 tokens=512 parallel=ddp"),
        (f"{GPT2} batch=2 tokens=128", f"{GPT2} batch=1 tokens=128 parallel=ddp"),
    ], "Half of the batch goes to each, but each has all weights, averages and gradients, and buckets as large as the gradients beside them."),
    ("A second GPU halves the memory of each (FSDP).", "allocated", (-55, -45), [
        (FIXED, f"{GPT2} batch=4 tokens=512 parallel=fsdp"),
        (f"{GPT2} batch=2 tokens=128", f"{GPT2} batch=1 tokens=128 parallel=fsdp"),
    ], "Weights, gradients and averages are halved with the batch; what is gathered for a block, and the embedding all through, is not."),
    ("Up to 90 % of the card's memory is safe.", "allocated", (-100, 10000), [
        (FIXED, f"{GPT2} batch=10 tokens=512 gpu=rtx3060"),
        (VARYING, f"{GPT2} batch=7 tokens=200,900,512,64 steps=8 precision=amp-bf16 gpu=rtx3060"),
    ], "Of the 11.65 GiB that PyTorch has of the card, 83 % and 87 % are allocated at the peak, and it fits; what is reserved beyond that is given back before it fails."),
    ("Above 90 % of the card's memory it runs out.", "end", (-100, 10000), [
        (FIXED, f"{GPT2} batch=12 tokens=512 gpu=rtx3060"),
    ], "97 % are allocated at the peak there, and it fits. No share of the card is right for all: `fraglab plan` says which batch fits."),
    ("A lower memory fraction lowers what is reserved.", "reserved", (-100, -1), [
        ("fraction batch=16 fraction=1.0", "fraction batch=16 fraction=0.1"),
    ], "It is a limit, not a saving: the program reserves the same."),
]
