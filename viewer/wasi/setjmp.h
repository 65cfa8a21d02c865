/* Going back where host memory ran out (base/scope.c) needs exceptions, which not every engine of
 * WebAssembly has. Here the call ends the instance: the page says so and starts another. */
#ifndef FRAG_WASI_SETJMP_H
#define FRAG_WASI_SETJMP_H

typedef int jmp_buf[1];

/* An exception of the host's, which no code of ours sees. */
__attribute__((import_module("fraglab"), import_name("out_of_memory"))) _Noreturn void
frag_wasi_out_of_memory(void);

#define setjmp(target) ((void)(target), 0)
#define longjmp(target, value) ((void)(target), (void)(value), frag_wasi_out_of_memory())

#endif
