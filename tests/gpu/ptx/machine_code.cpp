#include "gpu/ptx/machine_code.h"

#include "gpu/ptx/ptx_runtime.h"

#include <elf.h>

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr::ptx {
namespace {

constexpr std::size_t kInstructionBytes = 16;
constexpr unsigned kRegistersShift = 24;

template <typename T>
T readAt(std::span<const std::byte> file, std::size_t at)
{
    T value;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
}

std::optional<KernelCode> codeIn(std::span<const std::byte> file, std::string_view section)
{
    const auto header = readAt<Elf64_Ehdr>(file, 0);
    const auto sectionAt = [&](std::size_t index) {
        return readAt<Elf64_Shdr>(file, header.e_shoff + index * sizeof(Elf64_Shdr));
    };
    const std::size_t names = sectionAt(header.e_shstrndx).sh_offset;
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
        const Elf64_Shdr at = sectionAt(i);
        const auto* const name = reinterpret_cast<const char*>(file.data() + names + at.sh_name);
        if (name == section)
            return KernelCode{at.sh_info >> kRegistersShift, at.sh_size / kInstructionBytes};
    }
    return std::nullopt;
}

} // namespace

std::optional<KernelCode> codeOf(const std::string& kernel, const std::string& target)
{
    for (const MachineCode& code : machineCode())
        if (code.target == target)
            if (const auto found = codeIn(code.elf, ".text." + kernel))
                return found;
    return std::nullopt;
}

} // namespace mr::ptx
