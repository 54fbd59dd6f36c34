// Oniguruma's syntax in PCRE2's words.

#include "core/tokenizer/text_regex.h"

#include <cctype>
#include <utility>
#include <vector>

namespace mr {
namespace {

// White_Space. PCRE2's own \s also holds U+180E.
constexpr std::string_view kSpace = "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}"
                                    "\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
constexpr std::string_view kNoSpace =
    "\\x{0}-\\x{8}\\x{E}-\\x{1F}\\x{21}-\\x{84}\\x{86}-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-\\x{1FFF}"
    "\\x{200B}-\\x{2027}\\x{202A}-\\x{202E}\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{"
    "10FFFF}";
// PCRE2's own \w has no marks.
constexpr std::string_view kWord = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}";

class Translator
{
public:
    explicit Translator(std::string_view pattern)
        : m_in(pattern)
    {
    }

    Result<std::string> run()
    {
        while (m_at < m_in.size())
            MR_TRY(m_in[m_at] == '\\' ? escape() : outsideClass());
        return std::move(m_out);
    }

private:
    Status refuse(const std::string& what) const
    {
        return Status::error(ErrorKind::InvalidArgument, "the expression \"" + std::string(m_in) +
                                                             "\" has " + what +
                                                             ", which is not supported");
    }

    void copy(std::size_t bytes)
    {
        m_out += m_in.substr(m_at, bytes);
        m_at += bytes;
    }

    void replace(std::size_t bytes, std::string_view with)
    {
        m_out += with;
        m_at += bytes;
    }

    Status escape()
    {
        if (m_at + 1 >= m_in.size())
            return refuse("a \\ at its end");
        const char c = m_in[m_at + 1];
        if (c == 's' || c == 'S')
            shorthand(c == 's' ? kSpace : kNoSpace);
        else if (c == 'w')
            shorthand(kWord);
        else if (c == 'W' && !m_inClass)
            replace(2, "[^" + std::string(kWord) + "]");
        else if ((c == 'b' || c == 'B') && !m_inClass)
            replace(2, boundary(c == 'b'));
        else if (c == 'v') // a character in Oniguruma, a class in PCRE2
            replace(2, "\\x{B}");
        else if (c == 'p' || c == 'P')
            return property();
        else if (c == 'u' && m_at + 6 <= m_in.size())
            replace(6, "\\x{" + std::string(m_in.substr(m_at + 2, 4)) + "}");
        else if (std::isalnum(static_cast<unsigned char>(c)) == 0 ||
                 std::string_view(m_inClass ? "dDnrtfaex" : "dDnrtfaexAzZ").find(c) !=
                     std::string_view::npos)
            copy(2);
        else
            return refuse("\\" + std::string(1, c));
        return {};
    }

    // Between a character of a word and none, or at neither.
    static std::string boundary(bool isOne)
    {
        const std::string word = "[" + std::string(kWord) + "])";
        const std::string before = "(?<=" + word;
        const std::string none = "(?<!" + word;
        return isOne ? "(?:" + before + "(?!" + word + "|" + none + "(?=" + word + ")"
                     : "(?:" + before + "(?=" + word + "|" + none + "(?!" + word + ")";
    }

    void shorthand(std::string_view ranges)
    {
        replace(2, m_inClass ? std::string(ranges) : "[" + std::string(ranges) + "]");
    }

    // A name of more than two letters is a script; PCRE2 would take script extensions along.
    Status property()
    {
        const std::size_t close = m_in.find('}', m_at);
        if (m_at + 2 >= m_in.size() || m_in[m_at + 2] != '{' || close == std::string_view::npos)
            return refuse("\\p without {}");
        const std::string head(m_in.substr(m_at, 3));
        std::string_view name = m_in.substr(m_at + 3, close - m_at - 3);
        const bool inverted = name.starts_with('^');
        name.remove_prefix(inverted ? 1 : 0);
        const std::string one =
            head + (inverted ? "^" : "") + (name.size() > 2 ? "sc:" : "") + std::string(name) + "}";
        const std::string_view later = laterCharacters(name);
        const bool none = inverted != head.starts_with("\\P");
        if (later.empty() || (m_inClass && none))
            replace(close + 1 - m_at, one);
        else if (m_inClass)
            replace(close + 1 - m_at, one + std::string(later));
        else if (none)
            replace(close + 1 - m_at, "(?:(?![" + std::string(later) + "])" + one + ")");
        else
            replace(close + 1 - m_at, "[" + one + std::string(later) + "]");
        return {};
    }

    // One of the characters, or one that an expression of its own allows.
    struct OneOf {
        std::string characters;
        std::vector<std::string> others;
    };
    // A class in [ ]: the characters that all of its operands (between &&) hold.
    struct Class {
        bool inverted = false;
        std::vector<OneOf> operands;

        bool isPlain() const noexcept { return operands.size() == 1 && operands[0].others.empty(); }
    };

    static std::string spelled(const OneOf& choice)
    {
        std::string out = choice.characters.empty() ? "" : "[" + choice.characters + "]";
        for (const std::string& other : choice.others)
            out += (out.empty() ? "" : "|") + other;
        return choice.others.empty() ? out : "(?:" + out + ")";
    }

    static std::string spelled(const Class& value)
    {
        if (value.isPlain())
            return (value.inverted ? "[^" : "[") + value.operands[0].characters + "]";
        std::string inside;
        for (std::size_t i = 0; i < value.operands.size(); ++i) {
            const std::string one = spelled(value.operands[i]);
            inside += i + 1 < value.operands.size() ? "(?=" + one + ")" : one;
        }
        return value.inverted ? "(?:(?!" + inside + ")[\\x{0}-\\x{10FFFF}])" : "(?:" + inside + ")";
    }

    // A class inside of a class: its characters come along, where they cannot become a range.
    Status nestedClass(OneOf& choice, int depth)
    {
        if (m_in.substr(m_at).starts_with("[:"))
            return refuse("[: inside of [ ]");
        if (m_out.ends_with('-') && !m_out.ends_with("\\-"))
            return refuse("a - before [ inside of [ ]");
        Class inner;
        const std::string outside = std::exchange(m_out, std::string());
        MR_TRY(readClass(inner, depth + 1));
        m_out = outside;
        const bool joins =
            inner.isPlain() && !inner.inverted && !inner.operands[0].characters.starts_with('-');
        if (joins)
            m_out += inner.operands[0].characters;
        else
            choice.others.push_back(spelled(inner));
        if (m_at < m_in.size() && m_in[m_at] == '-')
            replace(1, "\\-");
        return {};
    }

    // From the [ to behind its ]; m_out holds the characters of the operand that is being read.
    Status readClass(Class& out, int depth)
    {
        constexpr int kMaxDepth = 8;
        if (depth == kMaxDepth)
            return refuse("[ inside of [ ] too often");
        out.inverted = m_in.substr(m_at).starts_with("[^");
        m_at += out.inverted ? 2 : 1;
        m_inClass = true;
        OneOf choice;
        const auto close = [&] {
            choice.characters = std::exchange(m_out, std::string());
            const bool empty = choice.characters.empty() && choice.others.empty();
            out.operands.push_back(std::exchange(choice, OneOf()));
            return empty ? refuse("an empty [ ]") : Status();
        };
        if (m_at < m_in.size() && m_in[m_at] == ']')
            replace(1, "\\]"); // the first one is a character
        while (m_at < m_in.size() && m_in[m_at] != ']') {
            if (m_in[m_at] == '[') {
                MR_TRY(nestedClass(choice, depth));
            } else if (m_in.substr(m_at).starts_with("&&")) {
                MR_TRY(close());
                m_at += 2;
            } else if (m_in[m_at] == '\\') {
                MR_TRY(escape());
            } else {
                copy(1);
            }
        }
        if (m_at >= m_in.size())
            return refuse("a [ without its ]");
        ++m_at;
        m_inClass = depth > 0;
        return close();
    }

    Status outsideClass()
    {
        if (m_in[m_at] == '[') {
            Class value;
            const std::string before = std::exchange(m_out, std::string());
            MR_TRY(readClass(value, 0));
            m_out = before + spelled(value);
            return {};
        }
        if (m_in[m_at] == '{')
            return interval();
        if (m_in.substr(m_at).starts_with("(?"))
            return group();
        if (m_in.substr(m_at).starts_with("(*"))
            return refuse("(*");
        copy(1);
        return {};
    }

    Status interval()
    {
        const std::size_t close = m_in.find('}', m_at);
        if (close == std::string_view::npos)
            return refuse("a { without its }");
        const std::string_view inside = m_in.substr(m_at + 1, close - m_at - 1);
        if (inside.empty() || inside.find_first_not_of("0123456789,") != std::string_view::npos)
            return refuse("a { that is no repetition");
        if (close + 1 < m_in.size() && m_in[close + 1] == '+')
            return refuse("{ }+"); // possessive in one, repeated again in the other
        if (close + 1 < m_in.size() && m_in[close + 1] == '?' &&
            inside.find(',') == std::string_view::npos)
            return refuse("{ }?"); // optional in one, as it is in the other
        if (inside.front() == ',')
            replace(1, "{0");
        copy(close + 1 - m_at);
        return {};
    }

    Status group()
    {
        for (const std::string_view known :
            {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)", "(?-i:"})
            if (m_in.substr(m_at).starts_with(known)) {
                copy(known.size());
                return {};
            }
        return refuse(std::string(m_in.substr(m_at, 4)));
    }

    std::string_view m_in;
    std::string m_out;
    std::size_t m_at = 0;
    bool m_inClass = false;
};

} // namespace

Result<std::string> translateRegex(std::string_view pattern)
{
    return Translator(pattern).run();
}

std::string escapeRegex(std::string_view literal)
{
    std::string out;
    for (const char c : literal) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80 && std::isalnum(byte) == 0)
            out += '\\';
        out += c;
    }
    return out;
}

} // namespace mr
