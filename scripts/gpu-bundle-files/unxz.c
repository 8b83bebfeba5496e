/* Decompresses .xz from stdin to stdout, for machines without xz. */
#include <lzma.h>
#include <stdio.h>

int main(void) {
    static uint8_t in[1 << 16], out[1 << 16];
    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_action action = LZMA_RUN;
    lzma_ret status = lzma_stream_decoder(&stream, UINT64_MAX, 0);
    while (status == LZMA_OK) {
        if (stream.avail_in == 0 && action == LZMA_RUN) {
            stream.next_in = in;
            stream.avail_in = fread(in, 1, sizeof in, stdin);
            if (feof(stdin) || ferror(stdin))
                action = LZMA_FINISH;
        }
        stream.next_out = out;
        stream.avail_out = sizeof out;
        status = lzma_code(&stream, action);
        size_t made = sizeof out - stream.avail_out;
        if (fwrite(out, 1, made, stdout) != made)
            return 1;
    }
    lzma_end(&stream);
    if (status == LZMA_STREAM_END && fflush(stdout) == 0)
        return 0;
    fprintf(stderr, "unxz: the archive is damaged (%d)\n", (int)status);
    return 1;
}
