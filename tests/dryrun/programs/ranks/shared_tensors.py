"""Tensors of the card handed to other processes by torch.multiprocessing: who receives one is charged nothing for it."""
import torch
import torch.multiprocessing as multiprocessing

ELEMENTS = 256 << 20  # of 4 bytes: half of the card


def consume(tensors, answers):
    before = torch.cuda.mem_get_info(0)[0]
    tensor = tensors.get()
    assert tensor.is_cuda and tensor.numel() == ELEMENTS and tensor.shape == (ELEMENTS,)
    doubled = tensor[: 1 << 20] * 2
    assert doubled.sum().item() == 0
    answers.put((torch.cuda.memory_allocated(), before - torch.cuda.mem_get_info(0)[0]))
    del tensor
    tensors.get()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    shared = torch.zeros(ELEMENTS, device="cuda")
    consumer = context.Process(target=consume, args=(tensors, answers))
    consumer.start()
    tensors.put(shared)
    allocated, taken = answers.get(timeout=120)
    assert allocated < 16 << 20 and taken < 64 << 20, (allocated, taken)
    tensors.put(None)
    consumer.join()
    assert consumer.exitcode == 0, consumer.exitcode
    again = torch.zeros(ELEMENTS // 2, device="cuda")
# gpu: 2200MiB
# expect: processes=2 fits=true
