// Where TextNormalizer works on both sides of a place as on the whole.

#include "core/tokenizer/text_normalizer.h"
#include "core/tokenizer/unicode_text.h"

#include <algorithm>

namespace mr {

// The table sees the clusters of the original text only if it is the first step. Forms join the
// characters of the original text only if no table has changed it.
bool TextNormalizer::isForStreams() const noexcept
{
    bool isChanged = false;
    for (std::size_t i = 0; i < m_steps.size(); ++i) {
        const bool isTable = std::holds_alternative<Precompiled>(m_steps[i]);
        const auto* replace = std::get_if<Replacement>(&m_steps[i]);
        isChanged |= isTable || std::holds_alternative<Nmt>(m_steps[i]);
        if ((isTable && i > 0) ||
            (isChanged && std::holds_alternative<std::unique_ptr<Form>>(m_steps[i])) ||
            (replace != nullptr && !replace->isOneCharacter && !replace->isRunOfSpaces))
            return false;
    }
    return true;
}

bool TextNormalizer::beginsAnew(std::string_view text, std::size_t at, Buffer& buffer) const
{
    const std::int32_t code = characterAt(text, at).code;
    return std::all_of(m_steps.begin(), m_steps.end(), [&](const Step& step) {
        if (std::holds_alternative<Precompiled>(step))
            return Precompiled::isBorder(text, at);
        const auto* form = std::get_if<std::unique_ptr<Form>>(&step);
        return form == nullptr || independent(**form, code, buffer.m_codes);
    });
}

// Behind a letter or number: the replacement of a run of spaces depends on its length.
bool TextNormalizer::isCertainBefore(std::string_view text, std::size_t at, Buffer& buffer) const
{
    return m_steps.empty() ||
           (isWord(characterBefore(text, at).code) && beginsAnew(text, at, buffer));
}

} // namespace mr
