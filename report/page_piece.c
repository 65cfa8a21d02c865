/* Data of a page in files beside it: `fraglab report --data-dir`.
 *
 * A browser does not let a page that was opened from the file system read other files, but shows
 * them in a frame. So each file is a small page of its own that hands its text to the page around
 * it. It stands in a frame without rights to that page (sandbox), and its own content security
 * policy allows its one script and nothing else. It is named by its content: a page never meets the
 * data of another, whatever was written to the folder since. */
#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/text.h"
#include "report/page.h"
#include "report/page_parts.h"

/* The last part of the folder's path, as part of an address. */
static void add_link(const char *folder, frag_text *link)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    size_t first = length;
    while (first > 0 && folder[first - 1] != '/')
        first--;
    for (size_t i = first; i < length; i++)
        if (strchr(plain, folder[i]) != NULL || (folder[i] == '.' && i > first))
            frag_text_add(link, "%c", folder[i]);
        else
            frag_text_add(link, "%%%02X", (unsigned)(unsigned char)folder[i]);
}

static void write_file(const frag_packed_columns *columns, FILE *stream)
{
    fprintf(stream,
            "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
            "script-src '%s'\">\n<title>Data of a report of fraglab</title>\n"
            "<script type=\"application/octet-stream\" id=\"data\">\n",
            frag_page_piece_hash);
    frag_packed_columns_print(columns, stream);
    fputs("\n</script>\n<script>", stream);
    fwrite(frag_page_piece, 1, frag_page_piece_bytes, stream);
    fputs("</script>\n", stream);
}

void frag_page_write_piece(frag_page *page, const frag_packed_columns *columns, const char *id,
                           FILE *stream)
{
    char name[FRAG_DIGEST_TEXT_BYTES];
    frag_digest *digest = frag_digest_create();
    frag_digest_add(digest, frag_page_piece_hash, strlen(frag_page_piece_hash));
    frag_digest_add(digest, columns->bytes, columns->count);
    frag_digest_finish(digest, name);
    frag_text path = {0};
    frag_text_add(&path, "%s/%s.html", page->data_folder, name);
    frag_output *output = frag_output_open(path.bytes, true, &page->error);
    if (output != NULL)
        write_file(columns, frag_output_stream(output));
    page->has_failed = output == NULL || !frag_output_finish(output, &page->error);
    frag_text_clear(&path);
    add_link(page->data_folder, &path);
    fprintf(stream,
            "<script type=\"application/octet-stream\" id=\"%s\" "
            "data-piece=\"%s/%s.html\"></script>\n",
            id, path.bytes, name);
    frag_text_destroy(&path);
}
