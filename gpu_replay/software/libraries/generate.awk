# Makes the C of a stand-in, or of its test, from its table: docs/software-cuda.md explains tables.
#
#     awk -v what=WHAT -v major=12 -f generate.awk [IMPORTS.TSV] NAME.calls
#
# WHAT: header (declarations of all functions), code (definitions of those that are not `hand`),
# map (the version script), soname, missing (functions without a table), and for tests/gpu_replay:
# test (calls of all functions) and compare (their kinds, beside the vendor's headers). With imports.tsv, functions in it that the table lacks get an entry that tells the report.
# awk, because nothing else is needed to build fraglab: python3 is there for some tests only.

function fail(why) {
    printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
    failed = 1
    exit 1
}

function trim(text) {
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    return text
}

# Splits text at the commas that stand in no bracket and no quotes.
function split_list(text, parts,  i, c, depth, count, quoted, start) {
    text = trim(text)
    if (text == "") return 0
    depth = quoted = count = 0
    start = 1
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "\"") quoted = !quoted
        else if (quoted) continue
        else if (c == "(" || c == "[") depth++
        else if (c == ")" || c == "]") depth--
        else if (c == "," && depth == 0) {
            parts[++count] = trim(substr(text, start, i - start))
            start = i + 1
        }
    }
    parts[++count] = trim(substr(text, start))
    return count
}

# The C type of a kind of parameter; "" for a word that is none.
function type_of(kind) {
    if (kind in types) return types[kind]
    if (kind ~ /^struct[0-9]+$/) {
        structs[substr(kind, 7)] = 1
        return "frag_standin_" kind
    }
    return ""
}

BEGIN {
    n = split("i32 int32_t u32 uint32_t i64 int64_t u64 uint64_t f32 float f64 double ptr void* h void* in const~void* " \
        "dev void* gone void* gone32 int32_t new void** new32 int32_t* out32 int32_t* out64 int64_t* outf32 float* " \
        "outf64 double* outptr void** text const~char** zero void* result void* fill void* maybe void* " \
        "size32 int32_t* size64 uint64_t* set32 int32_t set64 int64_t setptr void* get32 int32_t* " \
        "get64 int64_t* getptr void**", word, " ")
    for (i = 1; i < n; i += 2) {
        gsub(/~/, " ", word[i + 1])
        types[word[i]] = word[i + 1]
    }
    bits = "uint64_t"
}

{ sub(/\r$/, "") }
/^#/ || /^[ \t]*$/ { next }

# ---- imports.tsv: library, soname, function, node, releases
FILENAME ~ /\.tsv$/ {
    split($0, column, "\t")
    if (column[3] != "-") {
        wanted[++wanted_count] = column[3]
        wanted_soname[column[3], column[2]] = 1
    }
    next
}

# ---- the table
/^library / { library = $2; next }
/^soname / { if ($2 == major) soname = $3; next }
# Version node: the soname, unless the library has another name for it.
/^node / { node = $2; next }
/^include / { includes = includes "#include \"" $2 "\"\n"; next }

{
    line = $0
    is_hand = 0
    if (match(line, /^@[0-9]+ +/)) {
        only = substr(line, 2, 2) + 0
        line = substr(line, RLENGTH + 1)
        if (only != major) next
    }
    if (sub(/^hand +/, "", line)) is_hand = 1
    if (!match(line, /^[A-Za-z_][A-Za-z0-9_]*\(/)) fail("expected NAME(PARAMETERS), got: " $0)
    name = substr(line, 1, RLENGTH - 1)
    rest = substr(line, RLENGTH + 1)
    returns = "i32"
    if (match(rest, /\) *-> *[^)]*(\([^()]*\))?$/)) {
        returns = trim(substr(rest, RSTART + 1))
        sub(/^-> */, "", returns)
        rest = substr(rest, 1, RSTART - 1)
    } else if (!sub(/\) *$/, "", rest)) fail("expected ')' at the end of " name)
    if (name in known) fail(name " is there twice")
    known[name] = 1
    f = ++function_count
    names[f] = name
    hand[f] = is_hand
    result_value[f] = ""
    if (match(returns, / *= */)) {
        result_value[f] = substr(returns, RSTART + RLENGTH)
        returns = substr(returns, 1, RSTART - 1)
    }
    result_kind[f] = returns
    parameter_count[f] = split_list(rest, part)
    for (i = 1; i <= parameter_count[f]; i++) {
        value = ""
        if (match(part[i], / *= */)) {
            value = substr(part[i], RSTART + RLENGTH)
            part[i] = substr(part[i], 1, RSTART - 1)
        }
        words = split(part[i], word, " ")
        if (words > 2 || type_of(word[1]) == "") fail(name ": parameter " i " is no KIND [NAME] [= VALUE]: " part[i])
        kinds[f, i] = word[1]
        labels[f, i] = words == 2 ? word[2] : ""
        values[f, i] = value
        if (word[1] ~ /^([sg]et)/ && words < 2) fail(name ": parameter " i " needs the name of a field")
        if (word[1] ~ /^(size|zero|fill|result)/ && value == "") fail(name ": parameter " i " needs = VALUE")
        if (word[1] ~ /^[sg]et/ && !(word[2] in slots)) slots[word[2]] = slot_count++
    }
}

# ---- writing
function return_type(f,  kind) {
    kind = result_kind[f]
    if (kind == "void") return "void"
    if (kind == "text") return "const char *"
    if (kind == "new") return "void *"
    return type_of(kind)
}

function declaration(f,  text, i) {
    text = return_type(f) " " names[f] "("
    for (i = 1; i <= parameter_count[f]; i++)
        text = text (i > 1 ? ", " : "") type_of(kinds[f, i]) " p" i
    return text (parameter_count[f] ? "" : "void") ")"
}

# Numbers by their names, for expressions: as 64 bits without a sign.
function name_numbers(f, of_test,  i, from, text) {
    for (i = 1; i <= parameter_count[f]; i++)
        if (labels[f, i] != "" && kinds[f, i] ~ /^[iu](32|64)$/) {
            from = of_test ? "frag_standin_count(a[" i - 1 "].number)" : kinds[f, i] ~ /^u/ ? "p" i : "frag_standin_count(p" i ")"
            text = text "    const uint64_t " labels[f, i] " = " from ";\n    (void)" labels[f, i] ";\n"
        }
    return text
}

function needs_numbers(f,  i) {
    for (i = 1; i <= parameter_count[f]; i++)
        if (values[f, i] ~ /[A-Za-z_]/) return 1
    return result_value[f] ~ /[A-Za-z_]/
}

# LOW .. HIGH [in UNIT] of a size; the real library decides it.
function uncertain(f, i, type,  value, unit, low, high) {
    value = values[f, i]
    unit = 1
    if (match(value, / in [0-9]+$/)) {
        unit = substr(value, RSTART + 4)
        value = substr(value, 1, RSTART - 1)
    }
    low = high = value
    if (match(value, / \.\. /)) {
        low = substr(value, 1, RSTART - 1)
        high = substr(value, RSTART + 4)
    }
    return "(" type ")frag_standin_" (type == "int32_t" ? "size32" : "size") "(\"" names[f] "\", \"" (labels[f, i] == "" ? "workspace" : labels[f, i]) "\", " low ", " high ", " unit ")"
}

function field(f, i) {
    return "FIELD_" labels[f, i]
}

# The statement that serves one parameter.
function serve(f, i,  kind, value, p) {
    kind = kinds[f, i]
    value = values[f, i]
    p = "p" i
    if (kind == "new") return put(p, "frag_standin_new()")
    if (kind == "new32") return put(p, "frag_standin_new_number()")
    if (kind == "gone") return "frag_standin_end(" p ");"
    if (kind == "out32") return put(p, value == "" ? "0" : "(int32_t)(" value ")")
    if (kind == "out64") return put(p, value == "" ? "0" : "(int64_t)(" value ")")
    if (kind == "outf32" || kind == "outf64") return put(p, value == "" ? "0" : value)
    if (kind == "outptr") return put(p, value == "" ? "NULL" : value)
    if (kind == "text") return put(p, value == "" ? "\"\"" : value)
    if (kind == "zero") return "frag_standin_zero(" p ", " value ");"
    if (kind == "result") return "if (frag_standin_get(p1, FIELD_pointer_mode) == 0)\n        frag_standin_zero(" p ", " value ");"
    if (kind == "size32") return put(p, uncertain(f, i, "int32_t"))
    if (kind == "size64") return put(p, uncertain(f, i, "uint64_t"))
    if (kind == "set32") return "frag_standin_set(p1, " field(f, i) ", (uint32_t)" p ");"
    if (kind == "set64") return "frag_standin_set(p1, " field(f, i) ", (uint64_t)" p ");"
    if (kind == "setptr") return "frag_standin_set(p1, " field(f, i) ", (uint64_t)(uintptr_t)" p ");"
    if (kind == "get32") return put(p, "(int32_t)frag_standin_get(p1, " field(f, i) ")")
    if (kind == "get64") return put(p, "(int64_t)frag_standin_get(p1, " field(f, i) ")")
    if (kind == "getptr") return put(p, "(void *)(uintptr_t)frag_standin_get(p1, " field(f, i) ")")
    return "(void)" p ";"
}

function put(p, value) {
    return "if (" p " != NULL)\n        *" p " = " value ";"
}

function define(f,  i, kind) {
    print declaration(f) "\n{"
    if (needs_numbers(f)) printf "%s", name_numbers(f, 0)
    for (i = 1; i <= parameter_count[f]; i++) print "    " serve(f, i)
    kind = result_kind[f]
    if (kind == "new") print "    return frag_standin_new();"
    else if (kind != "void") print "    return " (result_value[f] == "" ? (kind == "text" ? "\"\"" : "0") : (kind == "text" || kind == "ptr" ? "" : "(" return_type(f) ")") result_value[f]) ";"
    print "}\n"
}

function write_header(  i, size) {
    print "/* Made from a table of calls by generate.awk. */"
    print "#include \"gpu_replay/software/libraries/standin.h\""
    print includes
    for (size in structs) print "typedef struct frag_standin_struct" size " { unsigned char bytes[" size "]; } frag_standin_struct" size ";"
    print "enum {"
    for (i in slots) print "    FIELD_" i " = " slots[i] ","
    print "    FIELD_COUNT = " slot_count + 0 "\n};"
    print "_Static_assert((int)FIELD_COUNT <= (int)FRAG_STANDIN_FIELDS, \"a handle has fewer fields\");\n"
    for (i = 1; i <= function_count; i++) print declaration(i) ";"
}

function write_code(  i) {
    print "#include <" library "_calls.h>\n"
    for (i = 1; i <= function_count; i++) if (!hand[i]) define(i)
    for (i = 1; i <= missing_count; i++) {
        print "int32_t " missing[i] "(void);\nint32_t " missing[i] "(void)\n{"
        print "    frag_software_note_unknown(\"" library "\", \"" missing[i] "\", __builtin_return_address(0));\n    return 0;\n}\n"
    }
    if (function_count + missing_count == 0) print "typedef int frag_standin_nothing;"
}

function write_map(  i) {
    print (node == "" ? soname : node) " {"
    if (function_count + missing_count) print "global:"
    for (i = 1; i <= function_count; i++) print "    " names[i] ";"
    for (i = 1; i <= missing_count; i++) print "    " missing[i] ";"
    print "local: *;\n};"
}

# What a test does with a parameter: the kinds of tests/gpu_replay/standin_calls.h.
function test_kind(kind) {
    if (kind ~ /^(i|u)(32|64)$/ || kind ~ /^set(32|64)$/) return "NUMBER"
    if (kind ~ /^f(32|64)$/) return "REAL"
    if (kind ~ /^struct/) return "STRUCTURE"
    if (kind == "new") return "NEW"
    if (kind == "new32") return "NEW_NUMBER"
    if (kind == "gone") return "GONE"
    if (kind == "gone32") return "GONE_NUMBER"
    if (kind == "h") return "HANDLE"
    if (kind == "dev") return "DEVICE"
    if (kind == "maybe") return "FREE"
    if (kind ~ /^(out|size|get|text|zero|result|fill)/) return "WRITTEN"
    return "READ"
}

function test_bytes(f, i,  kind) {
    kind = kinds[f, i]
    if (kind ~ /^(zero|result|fill)$/) return values[f, i]
    if (kind ~ /32$/) return 4
    return 8
}

function test_argument(f, i,  kind) {
    kind = kinds[f, i]
    if (kind ~ /^u(32|64)$/) return "(" type_of(kind) ")frag_standin_count(a[" i - 1 "].number)"
    if (kind ~ /^(gone32|set32|set64|i(32|64))$/) return "(" type_of(kind) ")a[" i - 1 "].number"
    if (kind ~ /^f(32|64)$/) return "0"
    if (kind ~ /^struct/) return "(frag_standin_" kind "){{0}}"
    return "a[" i - 1 "].pointer"
}

function write_test(  f, i, list) {
    print "/* Made from a table of calls by generate.awk. */"
    print "#include \"tests/gpu_replay/standin_calls.h\"\n#include <" library "_calls.h>\n"
    for (f = 1; f <= function_count; f++) {
        print "static void shape_" f "(frag_test_argument *a)\n{\n    (void)a;"
        for (i = 1; i <= parameter_count[f]; i++)
            if (kinds[f, i] ~ /^[iu](32|64)$/ && values[f, i] != "") print "    a[" i - 1 "].number = " values[f, i] ";"
        if (needs_numbers(f)) printf "%s", name_numbers(f, 1)
        for (i = 1; i <= parameter_count[f]; i++) {
            print "    a[" i - 1 "].kind = FRAG_TEST_" test_kind(kinds[f, i]) ";"
            if (test_kind(kinds[f, i]) == "WRITTEN") print "    a[" i - 1 "].bytes = " test_bytes(f, i) ";"
        }
        print "}\n"
        list = ""
        for (i = 1; i <= parameter_count[f]; i++) list = list (i > 1 ? ", " : "") test_argument(f, i)
        print "static void call_" f "(frag_test_function *function, frag_test_argument *a)\n{\n    (void)a;"
        print "    typedef __typeof__(&" names[f] ") type;"
        print "    " (result_kind[f] == "void" ? "" : "(void)") "((type)function)(" list ");\n}\n"
    }
    print "static const frag_test_call calls[] = {"
    for (f = 1; f <= function_count; f++) print "    {\"" names[f] "\", " parameter_count[f] ", shape_" f ", call_" f "},"
    print "    {0}\n};\n\nextern const frag_test_library frag_test_" library "_" major ";\nconst frag_test_library frag_test_" library "_" major " = {\"" library "\", \"" soname "\", " major ", calls};"
}

function write_compare(  f, i, list) {
    for (f = 1; f <= function_count; f++) {
        list = ""
        for (i = 1; i <= parameter_count[f]; i++) list = list ", \"" kinds[f, i] "\""
        print "FRAG_COMPARE(" names[f] ", \"" result_kind[f] "\"" list ")"
    }
}

END {
    if (failed) exit 1
    if (soname == "") {
        if (what != "soname" && what != "missing") fail("no soname for CUDA " major)
        exit
    }
    for (i = 1; i <= wanted_count; i++)
        if (!(wanted[i] in known) && ((wanted[i], soname) in wanted_soname) && !(wanted[i] in taken)) {
            taken[wanted[i]] = 1
            missing[++missing_count] = wanted[i]
        }
    if (what == "header") write_header()
    else if (what == "code") write_code()
    else if (what == "map") write_map()
    else if (what == "soname") print soname
    else if (what == "test") write_test()
    else if (what == "compare") write_compare()
    else if (what == "missing") { for (i = 1; i <= missing_count; i++) print missing[i] }
    else fail("what=" what " is none of header, code, map, soname, test, compare, missing")
}
