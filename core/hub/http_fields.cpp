#include "core/hub/http_fields.h"

#include "core/base/shown_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace mr {
namespace {

constexpr std::size_t kLongestUrl = 16384;
constexpr int kLargestPort = 65535;

Status wrongUrl(std::string_view text, const char* what)
{
    return Status::error(ErrorKind::InvalidArgument, "the address " + shownName(text) + " " + what);
}

template <typename Number>
std::optional<Number> wholeNumber(std::string_view text)
{
    Number number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (text.empty() || error != std::errc() || stop != end)
        return std::nullopt;
    return number;
}

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

int usualPort(std::string_view scheme)
{
    return scheme == "https" ? 443 : 80;
}

bool isHostText(std::string_view host)
{
    return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
               c == '_' || c == ':' || c == '[' || c == ']';
    });
}

// "host", "host:80" or "[::1]:80".
Status readAuthority(std::string_view text, std::string_view authority, HttpUrl& url)
{
    url.port = usualPort(url.scheme);
    const std::size_t bracket = authority.rfind(']');
    const std::size_t colon = authority.rfind(':');
    if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
        const auto port = wholeNumber<int>(authority.substr(colon + 1));
        if (!port || *port < 1 || *port > kLargestPort)
            return wrongUrl(text, "has no port between 1 and 65535 after its colon");
        url.port = *port;
        authority = authority.substr(0, colon);
    }
    url.host = lowerCase(authority);
    if (!isHostText(url.host))
        return wrongUrl(text, "has no host that can be asked");
    return {};
}

} // namespace

std::string lowerCase(std::string_view text)
{
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c - 'A' + 'a');
    return out;
}

std::string HttpUrl::shownHost() const
{
    return port == usualPort(scheme) ? host : host + ":" + std::to_string(port);
}

std::string HttpUrl::text() const
{
    return scheme + "://" + shownHost() + path;
}

Result<HttpUrl> parseUrl(std::string_view text)
{
    if (text.size() > kLongestUrl)
        return wrongUrl(text, "is longer than 16384 characters");
    for (const char c : text)
        if (c <= ' ' || c > '~')
            return wrongUrl(text, "has characters that no address has");
    const std::size_t colon = text.find("://");
    HttpUrl url;
    url.scheme = lowerCase(text.substr(0, std::min(colon, text.size())));
    if (colon == std::string_view::npos || (url.scheme != "http" && url.scheme != "https"))
        return wrongUrl(text, "does not begin with https:// or http://");
    std::string_view rest = text.substr(colon + 3);
    const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
    const std::string_view authority = rest.substr(0, slash);
    if (authority.find('@') != std::string_view::npos)
        return wrongUrl(text, "has a user in it; give a token in HF_TOKEN instead");
    MR_TRY(readAuthority(text, authority, url));
    rest = rest.substr(slash);
    url.path = rest.substr(0, rest.find('#'));
    if (!url.path.starts_with('/'))
        url.path.insert(0, "/");
    return url;
}

Result<HttpUrl> resolveUrl(const HttpUrl& base, std::string_view location)
{
    location = trimmed(location);
    if (location.starts_with("//"))
        return parseUrl(base.scheme + ":" + std::string(location));
    if (location.find("://") < location.find_first_of("/?#"))
        return parseUrl(location);
    HttpUrl root = base;
    if (location.starts_with('/')) {
        root.path = location;
    } else {
        const std::string folder = base.path.substr(0, base.path.find('?'));
        root.path = folder.substr(0, folder.rfind('/') + 1) + std::string(location);
    }
    return parseUrl(root.text());
}

std::string percentEncoded(std::string_view text, bool keepsSlash)
{
    std::string out;
    for (const char c : text) {
        const bool isPlain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
                             c == '~' || (c == '/' && keepsSlash);
        if (isPlain) {
            out += c;
            continue;
        }
        std::array<char, 4> hex{};
        (void)std::snprintf(hex.data(), hex.size(), "%%%02X", static_cast<unsigned char>(c));
        out += hex.data();
    }
    return out;
}

bool isLoopback(const HttpUrl& url)
{
    const bool isAddress = url.host.find_first_not_of("0123456789.") == std::string::npos;
    return url.host == "localhost" || url.host == "[::1]" ||
           (isAddress && url.host.starts_with("127."));
}

std::optional<std::string> headerOf(const HttpHead& head, std::string_view name)
{
    for (const HttpHeader& header : head.headers)
        if (lowerCase(header.name) == name)
            return std::string(trimmed(header.value));
    return std::nullopt;
}

std::optional<std::uint64_t> contentLength(const HttpHead& head)
{
    const auto value = headerOf(head, "content-length");
    return value ? wholeNumber<std::uint64_t>(*value) : std::nullopt;
}

std::string etagText(std::string_view value)
{
    value = trimmed(value);
    if (value.starts_with("W/"))
        value.remove_prefix(2);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
        value = value.substr(1, value.size() - 2);
    return std::string(value);
}

std::optional<ContentRange> parseContentRange(std::string_view value)
{
    value = trimmed(value);
    if (lowerCase(value.substr(0, 6)) != "bytes ")
        return std::nullopt;
    value = trimmed(value.substr(6));
    const std::size_t dash = value.find('-');
    const std::size_t slash = value.find('/');
    if (slash == std::string_view::npos || dash > slash)
        return std::nullopt;
    const auto first = wholeNumber<std::uint64_t>(value.substr(0, dash));
    const auto last = wholeNumber<std::uint64_t>(value.substr(dash + 1, slash - dash - 1));
    const std::string_view total = value.substr(slash + 1);
    if (!first || !last || *first > *last)
        return std::nullopt;
    ContentRange range{*first, *last, std::nullopt};
    if (total == "*")
        return range;
    range.total = wholeNumber<std::uint64_t>(total);
    if (!range.total || *last >= *range.total)
        return std::nullopt;
    return range;
}

std::optional<std::chrono::seconds> parseRetryAfter(std::string_view value, std::int64_t nowSeconds)
{
    value = trimmed(value);
    if (const auto seconds = wholeNumber<std::uint32_t>(value))
        return std::chrono::seconds(*seconds);
    std::tm date{};
    const std::string text(value);
    if (const char* end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
        end == nullptr || *end != '\0')
        return std::nullopt;
    const std::int64_t at = ::timegm(&date);
    return std::chrono::seconds(std::max<std::int64_t>(0, at - nowSeconds));
}

} // namespace mr
