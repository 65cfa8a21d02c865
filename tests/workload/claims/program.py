"""Programs of claims that the generator has no knob for: `python program.py KIND KEY=VALUE...`.

resnet   training of torchvision's ResNet-50: batch, inplace=true|false, sum=tensor|number (a running sum of losses)
gather   evaluation of it without gradients: batch, outputs=gpu|cpu (where a list of all outputs is kept)
graph    evaluation of it with gradients on, backward never runs: batch, sum=tensor|number
logits   evaluation of GPT-2 small without gradients: batch, tokens, outputs=gpu|cpu (where a list of all logits is kept)
held     training of GPT-2 small: batch, tokens, held=true|false (the name of the outputs lives over the next forward pass)
offload  training of GPT-2 small: batch, tokens, offload=true|false (torch.autograd.graph.save_on_cpu)
linear   inference of 16 linear layers of 4096 × 4096: weights=fp16|int8|nf4, as bitsandbytes has them
parallel training of ResNet-50: batch, cards=1|2 (torch.nn.DataParallel)
fraction training of ResNet-50: batch, fraction (torch.cuda.set_per_process_memory_fraction)"""
import contextlib
import sys

import torch

kind = sys.argv[1]
knobs = dict(word.split("=", 1) for word in sys.argv[2:])
batch = int(knobs.get("batch", 1))


def resnet():
    import torchvision

    model = torchvision.models.resnet50()
    for module in model.modules():
        if isinstance(module, torch.nn.ReLU):
            module.inplace = knobs.get("inplace", "true") == "true"
    return model.cuda()


def find_loss(model):
    images, labels = torch.randn(batch, 3, 224, 224).cuda(), torch.randint(0, 1000, (batch,)).cuda()
    return torch.nn.functional.cross_entropy(model(images), labels)


def train_resnet(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    total = 0
    for _ in range(4):
        loss = find_loss(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if "sum" in knobs:
            total += loss if knobs["sum"] == "tensor" else loss.item()


def gather():
    model, kept = resnet().eval(), []
    with torch.no_grad():
        for _ in range(40):
            outputs = model(torch.randn(batch, 3, 224, 224).cuda())
            kept.append(outputs if knobs["outputs"] == "gpu" else outputs.cpu())


def logits():
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model("gpt2")
    model, kept = AutoModelForCausalLM.from_config(config).cuda().eval(), []
    with torch.no_grad():
        for _ in range(8):
            ids = torch.randint(0, config.vocab_size, (batch, int(knobs["tokens"]))).cuda()
            outputs = model(input_ids=ids, use_cache=False).logits
            kept.append(outputs if knobs["outputs"] == "gpu" else outputs.cpu())


def graph():
    model, total = resnet().eval(), 0
    for _ in range(4):
        loss = find_loss(model)
        total += loss if knobs["sum"] == "tensor" else loss.item()


def train_gpt2():
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model("gpt2")
    model = AutoModelForCausalLM.from_config(config).cuda().train()
    optimizer = torch.optim.AdamW(model.parameters())
    is_offloaded = knobs.get("offload", "false") == "true"
    for _ in range(3):
        ids = torch.randint(0, config.vocab_size, (batch, int(knobs["tokens"]))).cuda()
        with torch.autograd.graph.save_on_cpu(pin_memory=True) if is_offloaded else contextlib.nullcontext():
            outputs = model(input_ids=ids, labels=ids)
        outputs.loss.backward()
        if knobs.get("held", "false") == "false":
            del outputs
        optimizer.step()
        optimizer.zero_grad()


def linear():
    if knobs["weights"] == "fp16":
        layers = [torch.nn.Linear(4096, 4096, bias=False, dtype=torch.float16) for _ in range(16)]
    else:
        import bitsandbytes

        made = {
            "int8": lambda: bitsandbytes.nn.Linear8bitLt(4096, 4096, bias=False, has_fp16_weights=False),
            "nf4": lambda: bitsandbytes.nn.Linear4bit(4096, 4096, bias=False, compute_dtype=torch.float16, quant_type="nf4"),
        }[knobs["weights"]]
        layers = [made() for _ in range(16)]
    model = torch.nn.Sequential(*layers).cuda()
    with torch.no_grad():
        model(torch.randn(batch, 4096).half().cuda())


if kind == "fraction":
    torch.cuda.set_per_process_memory_fraction(float(knobs["fraction"]))
if kind in ("resnet", "parallel", "fraction"):
    model = resnet()
    train_resnet(torch.nn.DataParallel(model) if knobs.get("cards") == "2" else model)
else:
    {"gather": gather, "logits": logits, "graph": graph, "held": train_gpt2, "offload": train_gpt2, "linear": linear}[kind]()
