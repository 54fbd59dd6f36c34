#include "core/hub/hub_endpoint.h"

#include "core/base/file.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr const char* kUsualEndpoint = "https://huggingface.co";
constexpr std::uint64_t kLongestToken = 4096;

std::string variable(const Environment& environment, const char* name)
{
    const char* value = environment(name);
    return value == nullptr ? std::string() : std::string(value);
}

std::string withoutSpace(const std::string& text)
{
    constexpr const char* kSpace = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kSpace);
    return first == std::string::npos
               ? std::string()
               : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// A header is a line: nothing in the token may end it.
Status checkToken(const std::string& token, const std::string& source)
{
    const bool isPlain =
        std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
    if (isPlain && token.size() <= kLongestToken)
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        source + " holds no token: a token is one word of letters, digits and signs");
}

Result<std::string> readToken(const Environment& environment)
{
    if (std::string token = withoutSpace(variable(environment, "HF_TOKEN")); !token.empty()) {
        MR_TRY(checkToken(token, "HF_TOKEN"));
        return token;
    }
    const std::string named = variable(environment, "HF_TOKEN_PATH");
    fs::path file = named;
    if (named.empty()) {
        MR_ASSIGN(file, hubHome(environment));
        file /= "token";
    }
    std::error_code error;
    if (!fs::exists(file, error)) {
        if (named.empty())
            return std::string();
        return Status::error(ErrorKind::InvalidArgument,
            "HF_TOKEN_PATH names " + named + ", which is not there; correct it or unset it");
    }
    MR_ASSIGN(const std::string text, readWholeFile(file, kLongestToken));
    std::string token = withoutSpace(text);
    MR_TRY(checkToken(token, file.string()));
    return token;
}

} // namespace

Environment processEnvironment()
{
    return [](const char* name) -> const char* { return std::getenv(name); };
}

std::string HubEndpoint::addressOf(const std::string& path) const
{
    HttpUrl address = url;
    while (address.path.ends_with('/'))
        address.path.pop_back();
    address.path += path;
    return address.text();
}

Result<fs::path> hubHome(const Environment& environment)
{
    if (const std::string home = variable(environment, "HF_HOME"); !home.empty())
        return fs::path(home);
    if (const std::string cache = variable(environment, "XDG_CACHE_HOME"); !cache.empty())
        return fs::path(cache) / "huggingface";
    const std::string home = variable(environment, "HOME");
    if (home.empty())
        return Status::error(ErrorKind::InvalidArgument,
            "there is no folder for what a hub sends: HOME is not set; name one in HF_HOME, or "
            "with "
            "--into");
    return fs::path(home) / ".cache" / "huggingface";
}

Result<fs::path> hubCache(const Environment& environment)
{
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) // the second is the older
        if (const std::string cache = variable(environment, name); !cache.empty())
            return fs::path(cache);
    MR_ASSIGN(const fs::path home, hubHome(environment));
    return home / "hub";
}

Result<HubEndpoint> hubEndpoint(const Environment& environment)
{
    const std::string offline = variable(environment, "HF_HUB_OFFLINE");
    if (offline == "1" || offline == "true" || offline == "TRUE" || offline == "ON" ||
        offline == "YES")
        return Status::error(ErrorKind::InvalidArgument,
            "HF_HUB_OFFLINE is set, so no hub is asked; unset it to fetch something");
    HubEndpoint endpoint;
    const std::string named = variable(environment, "HF_ENDPOINT");
    auto url = parseUrl(named.empty() ? kUsualEndpoint : named);
    if (!url.ok())
        return Status::error(ErrorKind::InvalidArgument, "HF_ENDPOINT: " + url.status().message());
    endpoint.url = std::move(url).value();
    if (endpoint.url.path.find('?') != std::string::npos)
        return Status::error(ErrorKind::InvalidArgument,
            "HF_ENDPOINT has a '?' in it; name the address of a hub alone");
    MR_ASSIGN(endpoint.token, readToken(environment));
    if (!endpoint.token.empty() && !endpoint.url.isSecure() && !isLoopback(endpoint.url)) {
        endpoint.token.clear();
        endpoint.isTokenUnsent = true;
    }
    return endpoint;
}

} // namespace mr
