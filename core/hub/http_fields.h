// Fields of HTTP answers and addresses, read strictly.
//
// Threads  Pure functions.
// Errors   InvalidArgument names the address and what is wrong with it.
// Source   RFC 3986 (addresses), RFC 9110 (Content-Range, ETag, Retry-After).

#pragma once

#include "core/hub/http_transport.h"

#include <millrace/status.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mr {

// An http or https address.
struct HttpUrl {
    std::string scheme;
    std::string host; // lower case
    int port = 0;
    std::string path; // with the query; begins with a slash

    bool isSecure() const { return scheme == "https"; }
    bool sameOrigin(const HttpUrl& other) const
    {
        return scheme == other.scheme && host == other.host && port == other.port;
    }
    // "host", or "host:port" where it is not the scheme's own.
    std::string shownHost() const;
    std::string text() const;
};

Result<HttpUrl> parseUrl(std::string_view text);
// `location` as a redirect from `base` names it.
Result<HttpUrl> resolveUrl(const HttpUrl& base, std::string_view location);
// All but letters, digits and "-._~" as %XX; a slash too, unless it is kept.
std::string percentEncoded(std::string_view text, bool keepsSlash);
// This machine itself: localhost, 127.x.x.x, [::1].
bool isLoopback(const HttpUrl& url);

// ASCII letters alone.
std::string lowerCase(std::string_view text);

// The value of a header; nothing: it is not there.
std::optional<std::string> headerOf(const HttpHead& head, std::string_view name);
std::optional<std::uint64_t> contentLength(const HttpHead& head);
// Without quotes and the mark of a weak one; empty: none.
std::string etagText(std::string_view value);

struct ContentRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;             // inclusive
    std::optional<std::uint64_t> total; // nothing: "*"
};

// "bytes 0-9/10"; nothing: it is broken.
std::optional<ContentRange> parseContentRange(std::string_view value);

// Seconds, or a date in GMT against `nowSeconds` since 1970; nothing: it is neither.
std::optional<std::chrono::seconds> parseRetryAfter(
    std::string_view value, std::int64_t nowSeconds);

} // namespace mr
