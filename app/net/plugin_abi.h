// One text that is equal in program and plugin only if both were built alike.
//
// CMake defines the two macros (plugin_abi.cmake): the version, and a hash over the headers of all
// types that cross the border.

#pragma once

#define MR_NET_TEXT_OF(x) #x
#define MR_NET_TEXT(x) MR_NET_TEXT_OF(x)

namespace mr::app {

inline constexpr const char* kNetAbi =
    "millrace " MR_NET_VERSION ", compiler " __VERSION__
    ", strings " MR_NET_TEXT(_GLIBCXX_USE_CXX11_ABI) ", interface " MR_NET_INTERFACE;

} // namespace mr::app

#undef MR_NET_TEXT
#undef MR_NET_TEXT_OF
