/* The written parts of the page, built into the program from report/page/page.html, page.css and
 * the scripts (the Makefile says in which order). */
#ifndef FRAG_REPORT_PAGE_PARTS_H
#define FRAG_REPORT_PAGE_PARTS_H

#include <stddef.h>

extern const unsigned char frag_page_template[];
extern const size_t frag_page_template_bytes;
extern const unsigned char frag_page_style[];
extern const size_t frag_page_style_bytes;
extern const unsigned char frag_page_script[];
extern const size_t frag_page_script_bytes;
/* The script of a file of its data folder. */
extern const unsigned char frag_page_piece[];
extern const size_t frag_page_piece_bytes;
extern const char frag_page_piece_hash[];
/* What the page's content security policy allows to run: "sha256-..." of the style and of the
 * script, as they stand in the page. */
extern const char frag_page_style_hash[];
extern const char frag_page_script_hash[];

#endif
