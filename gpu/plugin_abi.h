// One text that is equal in program and plugin only if both were built alike.
//
// CMake defines the two macros (plugin_abi.cmake): the version, and a hash over the headers of all
// types that cross the border.

#pragma once

#define MR_ABI_TEXT_OF(x) #x
#define MR_ABI_TEXT(x) MR_ABI_TEXT_OF(x)

namespace mr::gpu {

inline constexpr const char* kPluginAbi =
    "millrace " MR_PLUGIN_VERSION ", compiler " __VERSION__
    ", strings " MR_ABI_TEXT(_GLIBCXX_USE_CXX11_ABI) ", interface " MR_PLUGIN_INTERFACE;

} // namespace mr::gpu

#undef MR_ABI_TEXT
#undef MR_ABI_TEXT_OF
