/* How every function of the library calls what lies below: in a scope (base/scope.h), so that
 * failing host memory is an error, and with errors in the caller's form. */
#ifndef FRAG_API_API_CALL_H
#define FRAG_API_API_CALL_H

#include <stdbool.h>

#include "base/context.h"
#include "base/error.h"
#include "base/scope.h"
#include "include/fraglab.h"

/* What is done inside; false: error is filled. */
typedef bool frag_call_work(void *arguments, frag_error *error);

/* In the scope of a handle that the call changes. After FRAGLAB_E_MEMORY the scope is empty. */
int frag_call_in(frag_scope *scope, frag_call_work *work, void *arguments, fraglab_error *error);
/* In a scope of its own, which the work leaves in the handle that it makes (frag_scope_active):
 * what it left alive is in it. After a failure the scope is gone, so a handle is handed out last.
 */
int frag_call_new(frag_call_work *work, void *arguments, fraglab_error *error);
/* In a scope that ends with the call. */
int frag_call_once(frag_call_work *work, void *arguments, fraglab_error *error);

/* Fails without a call: a wrong argument, say. */
int frag_call_refuse(fraglab_error *error, int code, const char *where, const char *sentence);

/* The text becomes the caller's; to be the last thing that the work does. */
char *frag_call_hand_out(char *text);

/* A structure of the caller's, of which given_bytes are there, as one of ours: what is not there
 * is zero. false: its size makes no sense, or members that we do not know are set. */
bool frag_call_read(const void *given, void *ours, size_t our_bytes, const char *what,
                    frag_error *error);
/* The other way round; the caller's size stays. */
bool frag_call_write(const void *ours, size_t our_bytes, void *given, const char *what,
                     frag_error *error);

/* What lies below gets of a caller's context, NULL included. */
const frag_context *frag_call_context(const fraglab_context *context);
/* false: the caller's context wants the call to end, and error says so. */
bool frag_call_goes_on(const frag_context *context, frag_error *error);

#endif
