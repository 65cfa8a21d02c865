// Text of a golden log: numbers, addresses, strings, as JSON.
#ifndef FRAG_ORACLE_JSON_LINES_HPP
#define FRAG_ORACLE_JSON_LINES_HPP

#include <cstdint>
#include <cstdio>
#include <string>

namespace oracle
{
inline std::string address_text(uint64_t address)
{
    char text[32];
    std::snprintf(text, sizeof text, "\"0x%llx\"", static_cast<unsigned long long>(address));
    return text;
}

inline std::string string_text(const std::string &bytes)
{
    std::string text = "\"";
    for (char byte : bytes) {
        char escape[8];
        auto code = static_cast<unsigned char>(byte);
        if (byte == '"' || byte == '\\') {
            text += '\\';
            text += byte;
        } else if (byte == '\n') {
            text += "\\n";
        } else if (code < 32) {
            std::snprintf(escape, sizeof escape, "\\u%04x", code);
            text += escape;
        } else {
            text += byte;
        }
    }
    return text + '"';
}
} // namespace oracle

#endif
