#include "core/base/utf8.h"
#include "core/template/syntax.h"
#include "core/template/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mr::tpl {
namespace {

using Type = Token::Type;

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";

bool isNameByte(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
}

class Lexer
{
public:
    explicit Lexer(std::string source)
        : m_source(std::move(source))
    {
    }

    Result<std::vector<Token>> run()
    {
        while (m_at < m_source.size() && m_status.ok())
            cutText();
        if (!m_status.ok())
            return m_status;
        put(Type::End, "");
        return std::move(m_tokens);
    }

private:
    std::string_view rest() const { return std::string_view(m_source).substr(m_at); }
    char peek(std::size_t ahead = 0) const
    {
        return m_at + ahead < m_source.size() ? m_source[m_at + ahead] : '\0';
    }

    void put(Type type, std::string text) { m_tokens.push_back({type, std::move(text), m_line}); }
    void fail(const std::string& message) { m_status = templateError(m_line, message); }

    void moveTo(std::size_t at)
    {
        m_line += static_cast<int>(std::count(m_source.begin() + static_cast<std::ptrdiff_t>(m_at),
            m_source.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
        m_at = at;
    }

    // Template text up to the next tag, cut as the tag's signs ask.
    void cutText()
    {
        std::size_t tag = m_at;
        while ((tag = m_source.find('{', tag)) != std::string::npos) {
            const char next = tag + 1 < m_source.size() ? m_source[tag + 1] : '\0';
            if (next == '{' || next == '%' || next == '#')
                break;
            ++tag;
        }
        const bool last = tag == std::string::npos;
        std::string_view text = rest().substr(0, last ? std::string::npos : tag - m_at);
        if (!last) {
            const char sign = tag + 2 < m_source.size() ? m_source[tag + 2] : '\0';
            if (sign == '-')
                text = text.substr(0, stripped(text, false, true).end);
            else if (sign != '+' && m_source[tag + 1] != '{')
                text = withoutIndent(text);
        }
        if (!text.empty())
            put(Type::Text, std::string(text));
        moveTo(last ? m_source.size() : tag);
        if (!last)
            cutTag();
    }

    // lstrip_blocks: white space between the beginning of the line and a block tag goes.
    std::string_view withoutIndent(std::string_view text) const
    {
        const std::size_t feed = text.rfind('\n');
        const std::size_t begin = feed == std::string_view::npos ? 0 : feed + 1;
        if (begin == 0 && !m_lineStarts)
            return text;
        const std::string_view indent = text.substr(begin);
        return stripped(indent, true, false).begin == indent.size() ? text.substr(0, begin) : text;
    }

    void cutTag()
    {
        const char kind = peek(1);
        moveTo(m_at + 2);
        if (kind == '#')
            return cutComment();
        if (peek() == '-' || peek() == '+')
            moveTo(m_at + 1);
        if (kind == '%' && cutRaw())
            return;
        put(kind == '%' ? Type::TagBegin : Type::PrintBegin, "");
        m_brackets.clear();
        while (m_status.ok() && !cutTagEnd(kind))
            cutToken();
    }

    void cutComment()
    {
        const std::size_t end = m_source.find("#}", m_at);
        if (end == std::string::npos)
            return fail("the comment that begins here is not closed");
        moveTo(end);
        finishTag(end > 0 ? m_source[end - 1] : '\0', 2, true);
    }

    // Behind the end of a tag: "-" takes white space, a block tag takes one line feed.
    void finishTag(char sign, std::size_t length, bool isBlock)
    {
        std::size_t at = m_at + length;
        if (sign == '-')
            at += stripped(std::string_view(m_source).substr(at), true, false).begin;
        else if (isBlock && sign != '+' && at < m_source.size() && m_source[at] == '\n')
            ++at;
        moveTo(at);
        m_lineStarts = at > 0 && m_source[at - 1] == '\n';
    }

    // True when the tag was closed (or nothing is left to close it).
    bool cutTagEnd(char kind)
    {
        moveTo(m_at + stripped(rest(), true, false).begin);
        if (m_at >= m_source.size()) {
            fail("the tag is not closed at the end of the template");
            return true;
        }
        const std::string end = kind == '%' ? "%}" : "}}";
        const char sign = peek() == '-' || (peek() == '+' && kind == '%') ? peek() : '\0';
        const std::size_t skip = sign != '\0' ? 1 : 0;
        if (!m_brackets.empty() || !rest().substr(skip).starts_with(end))
            return false;
        put(kind == '%' ? Type::TagEnd : Type::PrintEnd, "");
        finishTag(sign, skip + 2, kind == '%');
        return true;
    }

    // {% raw %} ... {% endraw %}: everything inside is text.
    bool cutRaw()
    {
        std::size_t at = m_at;
        if (!skipWord(at, "raw") || !skipEnd(at, false))
            return false;
        moveTo(at);
        for (std::size_t tag = m_source.find("{%", m_at); tag != std::string::npos;
             tag = m_source.find("{%", tag + 1)) {
            std::size_t end = tag + 2;
            const char open = end < m_source.size() ? m_source[end] : '\0';
            end += open == '-' || open == '+' ? 1 : 0;
            if (!skipWord(end, "endraw") || !skipEnd(end, true))
                continue;
            std::string_view text = rest().substr(0, tag - m_at);
            text = open == '-'   ? text.substr(0, stripped(text, false, true).end)
                   : open != '+' ? withoutIndent(text)
                                 : text;
            put(Type::Text, std::string(text));
            moveTo(end);
            return true;
        }
        fail("\"raw\" is not closed by \"endraw\"");
        return true;
    }

    bool skipWord(std::size_t& at, std::string_view word) const
    {
        const std::string_view source(m_source);
        at += stripped(source.substr(at), true, false).begin;
        if (!source.substr(at).starts_with(word))
            return false;
        at += word.size();
        return true;
    }

    // The end of a tag at `at`, with the white space that its sign takes. The tag that begins raw
    // text leaves the line feed behind it (`trims` is false), as Jinja does.
    bool skipEnd(std::size_t& at, bool trims)
    {
        const std::string_view source(m_source);
        at += stripped(source.substr(at), true, false).begin;
        const char sign =
            at < source.size() && (source[at] == '-' || source[at] == '+') ? source[at] : '\0';
        at += sign != '\0' ? 1 : 0;
        if (!source.substr(at).starts_with("%}"))
            return false;
        at += 2;
        if (sign == '-')
            at += stripped(source.substr(at), true, false).begin;
        else if (trims && sign != '+' && at < source.size() && source[at] == '\n')
            ++at;
        m_lineStarts = source[at - 1] == '\n';
        return true;
    }

    void cutToken()
    {
        const char c = peek();
        if (c == '"' || c == '\'')
            return cutString(c);
        if (isDigit(c))
            return cutNumber();
        if (isNameByte(c)) {
            std::size_t end = m_at;
            while (end < m_source.size() && isNameByte(m_source[end]))
                ++end;
            put(Type::Name, m_source.substr(m_at, end - m_at));
            return moveTo(end);
        }
        cutSign();
    }

    void cutSign()
    {
        static constexpr std::array<std::string_view, 25> kSigns{"**", "//",
            "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "(", ")", "[", "]", "{", "}", "=",
            "<", ">", ".", ",", ":", "|"};
        for (const std::string_view sign : kSigns) {
            if (!rest().starts_with(sign))
                continue;
            if (sign == "(" || sign == "[" || sign == "{")
                m_brackets.push_back(sign == "(" ? ')' : sign == "[" ? ']' : '}');
            if (sign == ")" || sign == "]" || sign == "}") {
                if (m_brackets.empty() || m_brackets.back() != sign[0])
                    return fail("\"" + std::string(sign) + "\" closes nothing");
                m_brackets.pop_back();
            }
            put(Type::Sign, std::string(sign));
            return moveTo(m_at + sign.size());
        }
        fail(std::string("the character \"") + peek() + "\" has no meaning here");
    }

    void cutNumber()
    {
        std::size_t end = m_at;
        const char second = peek(1);
        const bool prefixed = peek() == '0' && second != '\0' &&
                              std::string_view("xXbBoO").find(second) != std::string_view::npos;
        if (prefixed) {
            end += 2;
            while (
                end < m_source.size() &&
                (kHexDigits.find(m_source[end]) != std::string_view::npos || m_source[end] == '_'))
                ++end;
        } else {
            end = digits(end);
            if (end + 1 < m_source.size() && m_source[end] == '.' && isDigit(m_source[end + 1]))
                end = digits(end + 1);
            end = exponent(end);
        }
        std::string text = m_source.substr(m_at, end - m_at);
        text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
        put(Type::Number, text);
        moveTo(end);
    }

    std::size_t digits(std::size_t at) const
    {
        while (at < m_source.size() && (isDigit(m_source[at]) || m_source[at] == '_'))
            ++at;
        return at;
    }

    std::size_t exponent(std::size_t at) const
    {
        if (at >= m_source.size() || (m_source[at] != 'e' && m_source[at] != 'E'))
            return at;
        std::size_t first = at + 1;
        if (first < m_source.size() && (m_source[first] == '+' || m_source[first] == '-'))
            ++first;
        return first < m_source.size() && isDigit(m_source[first]) ? digits(first) : at;
    }

    void cutString(char quote)
    {
        std::string out;
        std::size_t at = m_at + 1;
        while (at < m_source.size() && m_source[at] != quote && m_status.ok()) {
            if (m_source[at] != '\\')
                out.push_back(m_source[at++]);
            else
                at = escape(at + 1, out);
        }
        if (!m_status.ok())
            return;
        if (at >= m_source.size())
            return fail("the text that begins here is not closed");
        put(Type::String, std::move(out));
        moveTo(at + 1);
    }

    // `at` is behind the backslash; returns the offset behind the escape.
    std::size_t escape(std::size_t at, std::string& out)
    {
        static constexpr std::string_view kLetters = "ntrabfv\\'\"\n";
        static constexpr std::string_view kMeanings = "\n\t\r\a\b\f\v\\'\"";
        const char c = at < m_source.size() ? m_source[at] : '\0';
        if (const std::size_t known = kLetters.find(c); known != std::string_view::npos) {
            if (c != '\n') // a line feed behind a backslash is nothing
                out.push_back(kMeanings[known]);
            return at + 1;
        }
        if (c >= '0' && c <= '7')
            return numbered(at, 3, 8, out);
        if (c == 'x' || c == 'u' || c == 'U')
            return numbered(at + 1, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16, out);
        if (c == 'N')
            fail("characters by name (\\N{...}) are not supported");
        out.push_back('\\');
        return at;
    }

    std::size_t numbered(std::size_t at, std::size_t most, unsigned base, std::string& out)
    {
        char32_t number = 0;
        std::size_t count = 0;
        for (; count < most && at + count < m_source.size(); ++count) {
            const std::size_t digit = kHexDigits.find(m_source[at + count]);
            const std::size_t worth = digit == std::string_view::npos ? 99
                                      : digit > 15                    ? digit - 6
                                                                      : digit;
            if (worth >= base)
                break;
            number = number * base + static_cast<char32_t>(worth);
        }
        if ((base == 16 && count < most) || number > 0x10FFFF ||
            (number >= 0xD800 && number < 0xE000))
            fail("an escape in a text does not name a character");
        else
            appendCharacter(static_cast<std::int32_t>(number), out);
        return at + count;
    }

    std::string m_source;
    std::size_t m_at = 0;
    int m_line = 1;
    bool m_lineStarts = true; // the last text consumed ends with a line feed
    std::string m_brackets;   // closers of the brackets that are open
    std::vector<Token> m_tokens;
    Status m_status;
};

} // namespace

Status templateError(int line, const std::string& message)
{
    return Status::error(
        ErrorKind::InvalidArgument, fmt::format("chat template, line {}: {}", line, message));
}

Result<std::vector<Token>> cutTemplate(std::string_view source)
{
    std::string text;
    text.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r')
            text.push_back(source[i]);
        else if (i + 1 >= source.size() || source[i + 1] != '\n')
            text.push_back('\n');
    }
    if (text.ends_with('\n'))
        text.pop_back();
    return Lexer(std::move(text)).run();
}

} // namespace mr::tpl
