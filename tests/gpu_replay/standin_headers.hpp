// Compares a declaration of the vendor's with the kinds of parameters that a table of calls names.
#ifndef FRAG_GPU_REPLAY_STANDIN_HEADERS_HPP
#define FRAG_GPU_REPLAY_STANDIN_HEADERS_HPP

#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

static int frag_differing;

// Bytes that a pointer points to; 0: unknown, as of void.
template <class T> constexpr size_t pointee_bytes()
{
    if constexpr (std::is_void_v<T> || std::is_function_v<T>)
        return 0;
    else if constexpr (std::is_class_v<T> || std::is_union_v<T>)
        return 0;
    else
        return sizeof(T);
}

template <class T> bool fits(const std::string &kind)
{
    auto is_one_of = [&](std::initializer_list<const char *> kinds) {
        for (const char *other : kinds)
            if (kind == other)
                return true;
        return false;
    };
    if constexpr (std::is_void_v<T>)
        return kind == "void";
    else if constexpr (std::is_pointer_v<T>) {
        using pointee = std::remove_pointer_t<T>;
        constexpr bool is_const = std::is_const_v<pointee>;
        if (is_one_of({"h", "in", "dev", "ptr", "gone", "setptr"}))
            return true;
        if (is_one_of({"zero", "result", "fill", "maybe"}))
            return !is_const;
        if (is_one_of({"out32", "new32", "size32", "get32", "outf32"}))
            return !is_const && pointee_bytes<pointee>() == 4;
        if (is_one_of({"out64", "size64", "get64", "outf64"}))
            return !is_const && pointee_bytes<pointee>() == 8;
        if (kind == "text" && std::is_same_v<T, const char *>)
            return true;
        if (is_one_of({"new", "outptr", "text", "getptr"}))
            return !is_const && std::is_pointer_v<pointee>;
        return false;
    } else if constexpr (std::is_class_v<T>)
        return kind == "struct" + std::to_string(sizeof(T)) || (kind == "u64" && sizeof(T) == 8);
    else if constexpr (std::is_floating_point_v<T>)
        return kind == (sizeof(T) == 4 ? "f32" : "f64");
    else if constexpr (sizeof(T) == 8)
        return is_one_of({"i64", "u64", "set64"});
    else
        return is_one_of({"i32", "u32", "set32", "gone32"});
}

template <class T> struct frag_signature;

template <class R, class... A> struct frag_signature<R (*)(A...)> {
    static void compare(const char *name, const std::vector<std::string> &kinds)
    {
        size_t position = 0;
        auto say = [&](const char *why) {
            std::printf("%s: %s\n", name, why);
            frag_differing++;
        };
        if (!fits<R>(kinds[0]))
            say("what it returns differs");
        if (kinds.size() - 1 != sizeof...(A)) {
            say(("it has " + std::to_string(sizeof...(A)) + " parameters").c_str());
            return;
        }
        ((fits<A>(kinds[++position])
              ? void()
              : say(("parameter " + std::to_string(position) + " is no " + kinds[position]).c_str())),
         ...);
    }
};

#define FRAG_COMPARE(name, ...) frag_signature<decltype(&name)>::compare(#name, {__VA_ARGS__})

#endif
