#include "gpu/kernel_name.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace mr::gpu {

namespace {

bool isWord(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

} // namespace

std::string withoutNamespaces(std::string_view text)
{
    std::string name;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.substr(i, 2) != "::") {
            name += text[i];
            continue;
        }
        ++i;
        const bool isUnnamed = name.ends_with('}') || name.ends_with(')');
        if (isUnnamed)
            name.erase(name.find_last_of("{("));
        while (!isUnnamed && !name.empty() && isWord(name.back()))
            name.pop_back();
    }
    return name;
}

std::string kernelNameOf(const std::string& mangled)
{
    int failed = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &failed), &std::free);
    if (failed != 0)
        return mangled;
    // "void rmsNormKernel<Bf16, 8>(NormRows<Bf16>)"
    const std::string whole = withoutNamespaces(text.get());
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        depth += whole[i] == '<' ? 1 : whole[i] == '>' ? -1 : 0;
        if (depth == 0 && whole[i] == ' ')
            begin = i + 1;
        if (depth == 0 && whole[i] == '(')
            return whole.substr(begin, i - begin);
    }
    return whole;
}

} // namespace mr::gpu
