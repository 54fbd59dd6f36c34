// How a value is written in a place: the part that "%5s" % value and "{:>5}".format(value) share.
//
// Threads  That of the evaluator.
// Errors   Evaluator::fail(): the value that is returned then means nothing.

#pragma once

#include "core/template/evaluator.h"

#include <string>
#include <string_view>

namespace mr::tpl {

struct FormatSpec {
    std::string fill = " "; // one character
    char align = '\0';      // < > ^ =; 0: the type's own
    char sign = '-';
    bool isOther = false; // "#": 0x before the digits
    bool hasCommas = false;
    int width = 0;
    int precision = -1; // -1: not given
    char type = '\0';
    std::uint8_t flags = 0; // TextFlag of the format itself, for the characters it adds
};

// The number at `at`, which moves behind it; large ones count as 100000.
int takeNumber(std::string_view text, std::size_t& at);

// Fails where a place is wider than a template needs.
bool isWithinLimits(Evaluator& evaluator, const FormatSpec& spec);

// `head` bytes of the text are sign and prefix: "=" pads behind them.
Text padded(const Text& text, std::size_t head, const FormatSpec& spec, char ownAlign);
Text cut(const Text& text, int characters); // below 0: all
Text numberAs(const Value& value, const FormatSpec& spec);
Text reprText(const Value& value); // repr(value), data where the value is

} // namespace mr::tpl
