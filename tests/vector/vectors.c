/* SPDX-License-Identifier: BSD-3-Clause */
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTORS_MAX 64u

static struct vector vectors[VECTORS_MAX];
static size_t vector_count;
static json_t *root; /* kept: the strings of the vectors live in it */

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", VECTORS_JSON, what);
    exit(EXIT_FAILURE);
}

static size_t unhex(uint8_t *out, size_t cap, const char *hex)
{
    size_t n = strlen(hex) / 2;
    if (n > cap)
        fail("frame too long");
    for (size_t i = 0; i < n; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], 0};
        char *end;
        out[i] = (uint8_t)strtoul(pair, &end, 16);
        if (*end)
            fail("not hexadecimal");
    }
    return n;
}

/* Kept: the vectors' strings live in it. */
static json_t *root;

static void load(void)
{
    json_error_t err;
    root = json_load_file(VECTORS_JSON, 0, &err);
    if (!root)
        fail(err.text);
    const json_t *list = json_object_get(root, "vectors");
    size_t i;
    json_t *o;
    json_array_foreach(list, i, o)
    {
        struct vector *v = &vectors[vector_count++];
        if (vector_count > VECTORS_MAX)
            fail("too many vectors");
        v->id = json_string_value(json_object_get(o, "id"));
        v->name = json_string_value(json_object_get(o, "name"));
        v->kind = json_string_value(json_object_get(o, "kind"));
        v->expect = json_string_value(json_object_get(o, "expect"));
        v->decoded = json_object_get(o, "decoded");
        const char *hex = json_string_value(json_object_get(o, "frame_hex"));
        const char *icrc = json_string_value(json_object_get(o, "icrc_le32"));
        if (!v->id || !v->name || !v->kind || !hex)
            fail("a vector lacks id, name, kind or frame_hex");
        v->len = unhex(v->frame, sizeof(v->frame), hex);
        v->icrc = icrc ? (uint32_t)strtoul(icrc, NULL, 0) : 0;
    }
}

const struct vector *vectors_all(size_t *count)
{
    if (!vector_count)
        load();
    *count = vector_count;
    return vectors;
}

const struct vector *vectors_find(const char *id)
{
    size_t n;
    const struct vector *all = vectors_all(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].id, id) == 0)
            return &all[i];
    fail(id);
    return NULL;
}
