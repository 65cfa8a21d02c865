"""Matrix products of 8-bit floats, scaled as a whole and by rows; of groups, as in mixtures of experts; ragged tensors."""
import torch

rows, columns = torch.randn(64, 128, device="cuda"), torch.randn(32, 128, device="cuda")
left, right = rows.to(torch.float8_e4m3fn), columns.to(torch.float8_e4m3fn).t()
one = torch.tensor(1.0, device="cuda")
assert torch._scaled_mm(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16).shape == (64, 32)
by_row, by_column = torch.ones(64, 1, device="cuda"), torch.ones(1, 32, device="cuda")
assert torch._scaled_mm(left, right, scale_a=by_row, scale_b=by_column, out_dtype=torch.bfloat16).shape == (64, 32)
ends = torch.tensor([16, 32, 48, 64], dtype=torch.int32, device="cuda")
if hasattr(torch, "_scaled_grouped_mm"):
    experts = torch.randn(4, 32, 128, device="cuda").to(torch.float8_e4m3fn).transpose(-2, -1)
    made = torch._scaled_grouped_mm(left, experts, torch.ones(64, device="cuda"), torch.ones(4, 32, device="cuda"), offs=ends,
                                    out_dtype=torch.bfloat16)
    assert made.shape == (64, 32)
if hasattr(torch, "_grouped_mm"):
    experts = torch.randn(4, 128, 32, device="cuda", dtype=torch.bfloat16)
    assert torch._grouped_mm(rows.bfloat16(), experts, offs=ends).shape == (64, 32)
ragged = torch.nested.nested_tensor([torch.randn(5, 64), torch.randn(9, 64)], layout=torch.jagged, device="cuda", requires_grad=True)
heads = torch.nn.Linear(64, 64).cuda()(ragged).unflatten(-1, (4, 16)).transpose(1, 2)
attended = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(-2)
attended.values().sum().backward()
assert torch.nested.to_padded_tensor(attended, 0.0).shape == (2, 9, 64)
print("done")
# gpu: h100-80gb
# expect: fits=true identical
