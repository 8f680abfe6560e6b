/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SHA-256 by OpenSSL's libcrypto.
 */
#include "digest.h"

#include <openssl/evp.h>
#include <stdio.h>

/* A digest is an EVP context under another name. */
struct digest *digest_begin(void)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    if (ctx && !EVP_DigestInit_ex(ctx, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(ctx);
        ctx = NULL;
    }
    return (struct digest *)ctx;
}

void digest_add(struct digest *d, const void *data, size_t len)
{
    EVP_DigestUpdate((EVP_MD_CTX *)d, data, len);
}

void digest_end(struct digest *d, uint8_t out[DIGEST_LEN])
{
    EVP_DigestFinal_ex((EVP_MD_CTX *)d, out, NULL);
    EVP_MD_CTX_free((EVP_MD_CTX *)d);
}

const char *digest_text(const uint8_t digest[DIGEST_LEN], char buf[2 * DIGEST_LEN + 1])
{
    for (size_t i = 0; i < DIGEST_LEN; i++)
        snprintf(buf + 2 * i, 3, "%02x", digest[i]);
    return buf;
}
