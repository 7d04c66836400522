/* SPDX-License-Identifier: Apache-2.0 */
/* Parses addresses such as "127.0.0.1:7480" and listens there. Numeric addresses only: a name
 * service might block, so none is queried. */
#include "base/tcp_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/units.h"

static struct sockaddr_in *as_v4(struct tcp_address *address)
{
    return (struct sockaddr_in *)(void *)&address->storage;
}

static struct sockaddr_in6 *as_v6(struct tcp_address *address)
{
    return (struct sockaddr_in6 *)(void *)&address->storage;
}

int tcp_address_parse(const char *text, struct tcp_address *ret_address)
{
    char host[TCP_ADDRESS_TEXT_SIZE];
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || colon == text || (size_t)(colon - text) >= sizeof host ||
        parse_int64(colon + 1, 0, 65535, &port) < 0)
        return -EINVAL;
    snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    *ret_address = (struct tcp_address){.size = sizeof(struct sockaddr_in)};
    size_t n = strlen(host);
    if (host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        struct sockaddr_in6 *v6 = as_v6(ret_address);
        ret_address->size = sizeof *v6;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
    }
    struct sockaddr_in *v4 = as_v4(ret_address);
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

bool tcp_address_is_host_port(const char *text)
{
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || colon == text || parse_int64(colon + 1, 1, 65535, &port) < 0)
        return false;
    size_t host = (size_t)(colon - text);
    if (*text == '[')
        return text[host - 1] == ']' && strspn(text + 1, "0123456789abcdefABCDEF:.") == host - 2;
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
           host;
}

/* "127.0.0.1" or "[::1]". */
static void format_host(const struct tcp_address *address, char host[TCP_ADDRESS_TEXT_SIZE])
{
    struct tcp_address copy = *address;
    char text[INET6_ADDRSTRLEN] = "";
    if (address->storage.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &as_v6(&copy)->sin6_addr, text, sizeof text);
        snprintf(host, TCP_ADDRESS_TEXT_SIZE, "[%s]", text);
    } else {
        inet_ntop(AF_INET, &as_v4(&copy)->sin_addr, text, sizeof text);
        snprintf(host, TCP_ADDRESS_TEXT_SIZE, "%s", text);
    }
}

const char *tcp_address_format(const struct tcp_address *address, char text[TCP_ADDRESS_TEXT_SIZE])
{
    struct tcp_address copy = *address;
    uint16_t port = address->storage.ss_family == AF_INET6 ? as_v6(&copy)->sin6_port
                                                           : as_v4(&copy)->sin_port;
    format_host(address, text);
    size_t used = strlen(text);
    snprintf(text + used, TCP_ADDRESS_TEXT_SIZE - used, ":%u", (unsigned)ntohs(port));
    return text;
}

int tcp_address_port(const struct tcp_address *address)
{
    struct tcp_address copy = *address;
    return ntohs(
        address->storage.ss_family == AF_INET6 ? as_v6(&copy)->sin6_port : as_v4(&copy)->sin_port);
}

bool tcp_address_is_loopback(const struct tcp_address *address)
{
    struct tcp_address copy = *address;
    if (address->storage.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&as_v6(&copy)->sin6_addr);
    return ntohl(as_v4(&copy)->sin_addr.s_addr) >> 24 == 127;
}

uint64_t tcp_address_network(const struct tcp_address *address)
{
    struct tcp_address copy = *address;
    const struct in6_addr *v6 = &as_v6(&copy)->sin6_addr;
    uint64_t network;
    if (address->storage.ss_family != AF_INET6)
        return as_v4(&copy)->sin_addr.s_addr;
    if (IN6_IS_ADDR_V4MAPPED(v6))
        return v6->s6_addr32[3];
    memcpy(&network, v6, sizeof network);
    return network;
}

int tcp_address_listen(struct tcp_address *address, struct fault *fault)
{
    char text[TCP_ADDRESS_TEXT_SIZE];
    int yes = 1,
        fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, (struct sockaddr *)&address->storage, address->size) == 0 &&
        listen(fd, SOMAXCONN) == 0 &&
        getsockname(fd, (struct sockaddr *)&address->storage, &address->size) == 0)
        return fd;
    int r = fault_set(fault, errno, "%s: %s", tcp_address_format(address, text), strerror(errno));
    if (fd >= 0)
        close(fd);
    return r;
}

bool tcp_address_is_host(const struct tcp_address *address, const char *host)
{
    char own[TCP_ADDRESS_TEXT_SIZE];
    format_host(address, own);
    const char *const names[] = {"localhost", "127.0.0.1", "[::1]", own};
    for (size_t i = 0; host && i < ARRAY_SIZE(names); i++) {
        size_t n = strlen(names[i]);
        if (strncasecmp(host, names[i], n) != 0)
            continue;
        if (!host[n] ||
            (host[n] == ':' && strspn(host + n + 1, "0123456789") == strlen(host + n + 1)))
            return true;
    }
    return false;
}
