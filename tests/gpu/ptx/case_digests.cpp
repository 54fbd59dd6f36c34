#include "gpu/ptx/case_digests.h"

#include "core/base/file.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mr::ptx {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;

constexpr std::string_view kHead =
    "# Bits that the PTX machine (tests/gpu/ptx) computes for the cases of the conformance table.\n"
    "# To write it again, remove it and run MR_UPDATE_DIGESTS=1 ctest -j1 -R gpu/ptx/kernels_\n"
    "# case, exact or near, XXH3-64 of all results, error in tolerances; tabs between\n";

constexpr std::string_view kExact = "exact";
constexpr std::string_view kNear = "near";

std::vector<std::string> partsOf(const std::string& text, char separator)
{
    std::vector<std::string> parts;
    std::istringstream rest(text);
    for (std::string part; std::getline(rest, part, separator);)
        parts.push_back(part);
    return parts;
}

using Words = std::initializer_list<std::string_view>;

bool isOpen(const std::string& op)
{
    const std::vector<std::string> parts = partsOf(op, '.');
    const auto begins = [&](Words words) {
        return std::ranges::find(words, parts.front()) != words.end();
    };
    const auto has = [&](Words words) {
        return std::ranges::find_first_of(parts, words) != parts.end();
    };
    if (has({"approx", "full"}) || begins({"mma", "wmma", "wgmma"}))
        return true;
    if (!has({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}))
        return false;
    return begins({"atom", "red"}) ||
           (begins({"add", "sub", "mul"}) && !has({"rn", "rz", "rm", "rp"}));
}

std::string lineOf(const CaseDigest& digest)
{
    return fmt::format("{}\t{}\t{}\t{}\n", digest.name, digest.isExact ? kExact : kNear,
        digest.bits, digest.error);
}

} // namespace

std::string openInstruction(const Program& program)
{
    const auto found = std::ranges::find_if(program.texts, isOpen);
    return found == program.texts.end() ? std::string() : *found;
}

Result<CaseDigests> readDigests(const std::filesystem::path& path)
{
    MR_ASSIGN(const std::string text, readWholeFile(path, kMostBytes));
    CaseDigests digests;
    for (const std::string& line : partsOf(text, '\n')) {
        if (line.starts_with('#'))
            continue;
        const std::vector<std::string> fields = partsOf(line, '\t');
        if (fields.size() != 4 || (fields[1] != kExact && fields[1] != kNear))
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("{}: '{}' is not a case and its bits", path.string(), line));
        digests.insert({fields[0], fields[1] == kExact, fields[2], fields[3]});
    }
    return digests;
}

Status writeDigests(const std::filesystem::path& path, const CaseDigests& digests)
{
    std::string text(kHead);
    for (const CaseDigest& digest : digests)
        text += lineOf(digest);
    return replaceFile(path, text);
}

std::filesystem::path digestsPath()
{
    const char* const source = std::getenv("MILLRACE_SOURCE");
    return std::filesystem::path(source ? source : ".") / "tests/bench/ptx_digests.txt";
}

std::string checkDigests(const CaseDigests& now)
{
    const bool updates = std::getenv("MR_UPDATE_DIGESTS") != nullptr;
    std::error_code error;
    CaseDigests kept;
    if (!updates || std::filesystem::exists(digestsPath(), error)) {
        auto read = readDigests(digestsPath());
        if (!read.ok())
            return read.status().message();
        kept = std::move(read).value();
    }
    if (!updates)
        return newDigests(kept, now);
    kept.insert(now.begin(), now.end());
    return writeDigests(digestsPath(), kept).message();
}

std::string newDigests(const CaseDigests& kept, const CaseDigests& now)
{
    std::string lines;
    for (const CaseDigest& digest : now)
        if (!kept.contains(digest))
            lines += lineOf(digest);
    return lines;
}

std::string disagreements(const CaseDigests& digests)
{
    std::string names;
    const CaseDigest* before = nullptr;
    for (const CaseDigest& digest : digests) {
        if (before && before->name == digest.name && (before->isExact || digest.isExact))
            names += digest.name + "\n";
        before = &digest;
    }
    return names;
}

} // namespace mr::ptx
