#include "core/hub/hub_hash.h"

#include "core/base/file.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace mr {
namespace {

constexpr std::size_t kHashPieceBytes = std::size_t{1} << 20;

Status noHash()
{
    return Status::error(ErrorKind::Internal,
        "libcrypto makes no SHA-256 or SHA-1; a FIPS configuration of OpenSSL may forbid it");
}

} // namespace

struct HubHash::Context {
    EVP_MD_CTX* handle = EVP_MD_CTX_new();
};

void HubHash::Free::operator()(Context* context) const noexcept
{
    EVP_MD_CTX_free(context->handle);
    delete context; // NOLINT(cppcoreguidelines-owning-memory)
}

Result<HubHash> HubHash::begin(const HubFile& file)
{
    HubHash hash;
    hash.m_context.reset(new Context);
    EVP_MD_CTX* handle = hash.m_context->handle;
    if (handle == nullptr ||
        EVP_DigestInit_ex(handle, file.isLarge ? EVP_sha256() : EVP_sha1(), nullptr) != 1)
        return noHash();
    if (!file.isLarge) {
        const std::string head = "blob " + std::to_string(file.bytes) + '\0';
        MR_TRY(hash.add(std::as_bytes(std::span(head))));
    }
    return hash;
}

Status HubHash::add(std::span<const std::byte> piece)
{
    return EVP_DigestUpdate(m_context->handle, piece.data(), piece.size()) == 1 ? Status()
                                                                                : noHash();
}

Result<std::string> HubHash::end()
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned count = 0;
    if (EVP_DigestFinal_ex(m_context->handle, bytes.data(), &count) != 1)
        return noHash();
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < count; ++i) {
        text += kDigits[bytes[i] >> 4];
        text += kDigits[bytes[i] & 15U];
    }
    return text;
}

Status addFile(HubHash& hash, const std::filesystem::path& path, std::uint64_t bytes,
    const WriteProgress& progress)
{
    MR_ASSIGN(const File file, File::openRead(path));
    std::vector<std::byte> piece(std::min<std::uint64_t>(kHashPieceBytes, bytes));
    WriteMeter meter(bytes, progress);
    for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
        const std::span<std::byte> part =
            std::span(piece).first(std::min<std::uint64_t>(piece.size(), bytes - at));
        MR_TRY(file.readAt(at, part));
        MR_TRY(hash.add(part));
        MR_TRY(meter.add(part.size()));
    }
    return {};
}

WriteProgress untilStopped(const std::stop_token& stop)
{
    return [stop](std::uint64_t, std::uint64_t) {
        return stop.stop_requested() ? Status::error(ErrorKind::Cancelled, "stopped") : Status();
    };
}

Result<bool> isHubFile(
    const std::filesystem::path& path, const HubFile& file, const std::stop_token& stop)
{
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error) ||
        std::filesystem::file_size(path, error) != file.bytes)
        return false;
    MR_ASSIGN(HubHash hash, HubHash::begin(file));
    MR_TRY(addFile(hash, path, file.bytes, untilStopped(stop)));
    MR_ASSIGN(const std::string text, hash.end());
    return text == file.hash;
}

} // namespace mr
