/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a fuzz target over the files of a corpus folder, each once, without libFuzzer.
 */
#include <dirent.h>
#include <string.h>

#include "fuzz.h"

/* Run one file; the input lies in a heap block of its exact size, so that a sanitizer notices every
 * octet read after its end. */
static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        return -1;
    }
    long size = ftell(f);
    rewind(f);
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    size_t got = data && size > 0 ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    if (!data || got != (size_t)size) {
        fprintf(stderr, "%s: short read\n", path);
        free(data);
        return -1;
    }
    LLVMFuzzerTestOneInput(data, got);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
        return 2;
    }
    DIR *dir = opendir(argv[1]);
    if (!dir) {
        perror(argv[1]);
        return 1;
    }
    unsigned files = 0;
    int rc = 0;
    struct dirent *e;
    while ((e = readdir(dir))) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
        rc |= run_file(path);
        files++;
    }
    closedir(dir);
    printf("%u inputs\n", files);
    return rc || !files; /* an empty corpus tests nothing */
}
