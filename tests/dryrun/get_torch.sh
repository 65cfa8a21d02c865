# shellcheck shell=sh
# Sourced: get RELEASE sets venv to an environment with that release of PyTorch for CUDA. FRAG_DRYRUN_VENV names a folder
# with ready ones, venv-RELEASE; else it is made below build/dryrun, and what is fetched is said first.
wheel_megabytes=900

is_ready() { # release
    [ -x "${FRAG_DRYRUN_VENV:-}/venv-$1/bin/python" ] || [ -e "build/dryrun/torch-$1/venv/complete" ]
}

get() { # release
    ready=${FRAG_DRYRUN_VENV:-}/venv-$1
    [ -x "$ready/bin/python" ] && venv=$ready && return 0
    venv=build/dryrun/torch-$1/venv
    [ -e "$venv/complete" ] && return 0
    echo "torch $1: its wheel and that of triton are about $wheel_megabytes MB to fetch, 2.5 GB on disk in $venv"
    rm -rf "$venv"
    python3 -m venv "$venv" &&
        "$venv/bin/pip" install -q numpy filelock typing_extensions sympy networkx jinja2 fsspec setuptools pillow &&
        "$venv/bin/pip" install -q --no-deps "torch==$1" &&
        get_companions "$1" &&
        "$venv/bin/pip" install -q transformers diffusers && # these do not ask for torch, but for much else
        "$venv/bin/pip" install -q --no-deps accelerate peft timm bitsandbytes galore_torch expecttest psutil &&
        touch "$venv/complete"
}

# The triton that the release asks for, the torchvision of the same day where there is one, and for tests/workload torchao.
get_companions() { # release
    triton=$("$venv/bin/python" -c 'import importlib.metadata as m
print(*(r.split(";")[0].replace(" ", "") for r in m.requires("torch") or [] if r.startswith("triton")))')
    "$venv/bin/pip" install -q --no-deps "${triton:-triton}" || return 1
    vision=$(echo "$1" | awk -F. '{ printf "0.%d.%d", $2 + 15, $3 }')
    "$venv/bin/pip" install -q --no-deps "torchvision==$vision" || echo "torch $1: no torchvision $vision"
    # Aside: later ones do not go with it, and peft refuses to load beside this one.
    [ "$1" != 2.9.1 ] || "$venv/bin/pip" install -q --no-deps --target "$venv/aside" torchao==0.14.1
}
