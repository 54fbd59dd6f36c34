// The fuzz targets as a libFuzzer program: `fuzz --target=records [arguments of libFuzzer]`.
//
// One process runs one target. libFuzzer passes over arguments that begin with two dashes.

#include "fuzz/targets.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

void (*chosenTarget)(std::string_view) = nullptr;

constexpr std::string_view kOption = "--target=";

void choose(std::string_view name)
{
    for (const mr::fuzz::Target& target : mr::fuzz::kTargets)
        if (name == target.name)
            chosenTarget = target.run;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv)
{
    for (int i = 1; i < *argc; ++i)
        if (const std::string_view argument = (*argv)[i]; argument.starts_with(kOption))
            choose(argument.substr(kOption.size()));
    if (chosenTarget != nullptr)
        return 0;
    (void)std::fprintf(stderr, "fuzz --target=NAME, one of:\n");
    for (const mr::fuzz::Target& target : mr::fuzz::kTargets)
        (void)std::fprintf(stderr, "  %s\n", target.name);
    std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    chosenTarget({reinterpret_cast<const char*>(data), bytes});
    return 0;
}
