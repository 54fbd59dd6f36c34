// Texts in which tokenizers that differ show it: spaces, lines, digits, contractions, scripts,
// emoji, code.
//
// Threads  Pure.

#pragma once

#include <string>
#include <vector>

namespace mr {

// 200 of them.
std::vector<std::string> checkTexts();

} // namespace mr
