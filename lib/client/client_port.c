/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port of the program's own: the engine library is loaded when the first one is opened, and
 * stays.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_engine.h"

#define ENGINE_FILE "liburnic-engine.so"

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static const struct ipc_engine *loaded; /* under `loading` */

__attribute__((format(printf, 3, 4))) static void say(char *why, size_t size, const char *fmt, ...)
{
    va_list ap;
    if (size == 0)
        return;
    va_start(ap, fmt);
    vsnprintf(why, size, fmt, ap);
    va_end(ap);
}

static bool is_there(const char *dir, const char *sub, char *path, size_t size)
{
    int n = snprintf(path, size, "%s%s/" ENGINE_FILE, dir, sub);
    return n > 0 && (size_t)n < size && access(path, R_OK) == 0;
}

/* The folder of the file with this code: liburnic itself, or a program that it is linked into. */
static bool own_dir(char *dir, size_t size)
{
    Dl_info info;
    char *slash;
    if (dladdr(&loading, &info) == 0 || info.dli_fname == NULL)
        return false;
    int n = snprintf(dir, size, "%s", info.dli_fname);
    slash = n > 0 && (size_t)n < size ? strrchr(dir, '/') : NULL;
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

/* The user's setting first, and only it; then the library built or installed with us, which alone
 * fits; then the configured place. */
static bool find_engine(char *path, size_t size)
{
    static const char *const from_here[] = {
        "", "/urnic", "/../nic/program", "/../../lib/nic/program", "/../../../lib/nic/program",
    };
    const char *env = secure_getenv("URNIC_PLUGIN_DIR");
    char dir[PATH_MAX];
    if (env != NULL && *env != '\0')
        return is_there(env, "", path, size);
    if (own_dir(dir, sizeof(dir))) {
        for (size_t i = 0; i < sizeof(from_here) / sizeof(from_here[0]); i++) {
            if (is_there(dir, from_here[i], path, size))
                return true;
        }
    }
    return is_there(URNIC_PLUGIN_LIBDIR, "", path, size);
}

/* Under `loading`. */
static int load_engine(char *why, size_t size)
{
    char path[PATH_MAX];
    if (!find_engine(path, sizeof(path))) {
        say(why, size,
            ENGINE_FILE " was not found: install urnic, or set URNIC_PLUGIN_DIR to the folder that "
                        "holds it");
        return -ENOSYS;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct ipc_engine *e = handle != NULL ? dlsym(handle, IPC_ENGINE_SYMBOL) : NULL;
    if (e == NULL) {
        say(why, size, "%s could not be loaded: %s", path, dlerror());
        return -ENOSYS;
    }
    if (e->abi != IPC_ENGINE_ABI || strcmp(e->version, URNIC_VERSION) != 0) {
        say(why, size, "%s is of another release, %s: this is %s", path, e->version, URNIC_VERSION);
        return -EPROTONOSUPPORT;
    }
    client_signal_engine(e);
    loaded = e;
    return 0;
}

int client_engine_load(const struct ipc_engine **out, char *why, size_t size)
{
    pthread_mutex_lock(&loading);
    int err = loaded == NULL ? load_engine(why, size) : 0;
    *out = loaded;
    pthread_mutex_unlock(&loading);
    return err;
}

int urnic_open_port(const char *spec, struct urnic_context **out, char *why, size_t size)
{
    char text[IPC_ENGINE_WHY] = "";
    const struct ipc_engine *engine;
    struct program *program;
    say(why, size, "%s", "");
    int err = client_engine_load(&engine, why, size);
    if (err < 0)
        return err;
    struct urnic_context *ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL)
        return -ENOMEM;
    err = engine->open(spec, &program, text);
    if (err == 0)
        err = client_conn_open_program(&ctx->conn, engine, program);
    if (err < 0) {
        say(why, size, "%s", text);
        free(ctx);
        return err;
    }
    err = client_context_open(ctx, NULL, -1);
    if (err == 0)
        *out = ctx;
    return err;
}
