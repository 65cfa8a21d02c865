#!/bin/sh
# embed.sh TEMPLATE STYLE SCRIPT PIECE: prints C that holds the four files (report/page_parts.h), and the hashes
# by which a content security policy knows the style and the scripts.
set -eu

# name, file
as_array() {
    printf 'const unsigned char frag_page_%s[] = {\n' "$1"
    od -An -v -tu1 "$2" | sed 's/  *\([0-9][0-9]*\)/\1,/g'
    printf '};\nconst size_t frag_page_%s_bytes = sizeof frag_page_%s;\n' "$1" "$1"
}

# The sha256 of a file in base64: its hexadecimal digits as octal escapes, as bytes.
hash_of() {
    escapes=$(sha256sum "$1" | awk '{
        digits = "0123456789abcdef"
        for (i = 1; i < 64; i += 2)
            printf "\\%03o", (index(digits, substr($1, i, 1)) - 1) * 16 + index(digits, substr($1, i + 1, 1)) - 1
    }')
    # shellcheck disable=SC2059 # the escapes are the format
    printf "$escapes" | base64
}

echo '#include "report/page_parts.h"'
as_array template "$1"
as_array style "$2"
as_array script "$3"
as_array piece "$4"
printf 'const char frag_page_style_hash[] = "sha256-%s";\n' "$(hash_of "$2")"
printf 'const char frag_page_script_hash[] = "sha256-%s";\n' "$(hash_of "$3")"
printf 'const char frag_page_piece_hash[] = "sha256-%s";\n' "$(hash_of "$4")"
