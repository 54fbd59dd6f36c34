#include "gpu/ptx/ptx_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <utility>

namespace mr::ptx {
namespace {

struct Token {
    std::string_view text;
    int line = 0;
};

bool isWordStart(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
           c == '.';
}

std::vector<Token> tokensOf(std::string_view text)
{
    std::vector<Token> tokens;
    int line = 1;
    std::size_t at = 0;
    while (at < text.size()) {
        const char c = text[at];
        if (c == '\n')
            ++line;
        if (std::isspace(static_cast<unsigned char>(c)) != 0) {
            ++at;
            continue;
        }
        if (text.substr(at, 2) == "//") {
            at = std::min(text.find('\n', at), text.size());
            continue;
        }
        std::size_t end = at + 1;
        if (c == '"')
            end = std::min(text.find('"', end), text.size() - 1) + 1;
        else if (isWordStart(c))
            while (end < text.size() && isWordStart(text[end]))
                ++end;
        tokens.push_back({text.substr(at, end - at), line});
        at = end;
    }
    return tokens;
}

// Bytes of a type, by the number in its name.
std::size_t bytesOf(std::string_view type)
{
    const std::size_t digit = type.find_first_of("0123456789");
    if (digit == std::string_view::npos)
        return 0; // pred
    std::size_t bits = 0;
    std::from_chars(type.data() + digit, type.data() + type.size(), bits);
    return bits / 8;
}

class Reader
{
public:
    explicit Reader(std::string_view text)
        : m_tokens(tokensOf(text))
    {
    }

    Result<Module> read()
    {
        while (!isAtEnd())
            MR_TRY(readDirective());
        return std::move(m_module);
    }

private:
    bool isAtEnd() const { return m_at == m_tokens.size(); }
    std::string_view peek(std::size_t ahead = 0) const
    {
        return m_at + ahead < m_tokens.size() ? m_tokens[m_at + ahead].text : std::string_view();
    }
    std::string_view next() { return isAtEnd() ? std::string_view() : m_tokens[m_at++].text; }
    int line() const
    {
        return m_tokens.empty() ? 0 : m_tokens[std::min(m_at, m_tokens.size() - 1)].line;
    }
    bool take(std::string_view text)
    {
        const bool is = peek() == text;
        m_at += is ? 1 : 0;
        return is;
    }
    Status error(std::string_view what) const
    {
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("line {}: {}, at '{}'", line(), what, peek()));
    }
    Status expect(std::string_view text)
    {
        return take(text) ? Status() : error(fmt::format("'{}' expected", text));
    }

    Status readDirective()
    {
        if (take(".version") || take(".address_size")) {
            next();
            return {};
        }
        if (take(".target")) {
            m_module.target = next();
            while (take(","))
                next();
            return {};
        }
        if (peek() == ".file")
            return skipLine();
        if (take(".section"))
            return skipSection();
        const bool isExtern = take(".extern");
        take(".visible");
        if (take(".entry"))
            return readEntry();
        if (take(".shared")) {
            MR_ASSIGN(Variable variable, readVariable());
            variable.isDynamic = isExtern;
            m_module.shared.push_back(std::move(variable));
            return expect(";");
        }
        return error("a directive that is not known");
    }

    // Places in the source, of which one stands on a line.
    Status skipLine()
    {
        for (const int at = line(); !isAtEnd() && m_tokens[m_at].line == at;)
            ++m_at;
        return {};
    }

    // .loc 1 98 9, function_name $L__info_string3, inlined_at 1 120 5
    Status readPlace()
    {
        m_place.clear();
        for (const int at = line(); !isAtEnd() && m_tokens[m_at].line == at;)
            m_place.append(m_place.empty() ? "" : " ").append(next());
        return {};
    }

    Status skipSection()
    {
        next();
        MR_TRY(expect("{"));
        while (!isAtEnd() && !take("}"))
            ++m_at;
        return {};
    }

    // .align 16 .b8 name[64]
    Result<Variable> readVariable()
    {
        Variable variable;
        if (take(".align"))
            MR_TRY(readCount(variable.align));
        const std::size_t element = bytesOf(next());
        variable.align = std::max(variable.align, element);
        if (take(".ptr") && take(".align")) { // alignment of the pointee
            std::size_t pointee = 0;
            MR_TRY(readCount(pointee));
        }
        variable.name = next();
        std::size_t count = 1;
        if (take("[") && !take("]")) {
            MR_TRY(readCount(count));
            MR_TRY(expect("]"));
        } else if (m_tokens[m_at - 1].text == "]")
            count = 0;
        variable.bytes = element * count;
        return variable;
    }

    Status readCount(std::size_t& out)
    {
        const std::string_view text = peek();
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
        if (code != std::errc() || end != text.data() + text.size())
            return error("a number expected");
        next();
        return {};
    }

    Status readEntry()
    {
        m_entry = {};
        m_place.clear();
        m_entry.name = next();
        MR_TRY(expect("("));
        while (!take(")")) {
            MR_TRY(expect(".param"));
            MR_ASSIGN(Variable parameter, readVariable());
            m_entry.parameters.push_back(std::move(parameter));
            take(",");
        }
        while (!take("{"))
            MR_TRY(readLimit());
        for (int depth = 1; depth > 0;)
            MR_TRY(readStatement(depth));
        m_module.entries.push_back(std::move(m_entry));
        return {};
    }

    Status readLimit()
    {
        const std::string_view name = next();
        std::size_t product = 1;
        do {
            std::size_t count = 0;
            MR_TRY(readCount(count));
            product *= count;
        } while (take(","));
        if (name == ".maxntid")
            m_entry.maxThreads = static_cast<int>(product);
        else if (name != ".minnctapersm" && name != ".reqntid")
            return error(fmt::format("'{}' is not known", name));
        return {};
    }

    Status readStatement(int& depth)
    {
        if (isAtEnd())
            return error("an entry without an end");
        if (take("{")) {
            ++depth;
            return {};
        }
        if (take("}")) {
            --depth;
            return {};
        }
        if (peek(1) == ":") {
            m_entry.labels[std::string(next())] = m_entry.instructions.size();
            next();
            return {};
        }
        if (peek() == ".loc")
            return readPlace();
        if (take(".pragma")) {
            next();
            return expect(";");
        }
        if (take(".reg"))
            return readRegisters();
        if (peek() == ".shared" || peek() == ".local") {
            const bool isShared = next() == ".shared";
            MR_ASSIGN(Variable variable, readVariable());
            (isShared ? m_entry.shared : m_entry.local).push_back(std::move(variable));
            return expect(";");
        }
        return readInstruction();
    }

    // .reg .b32 %r<66>;  .reg .pred p, q;
    Status readRegisters()
    {
        const auto type = std::string(next().substr(1));
        do {
            const auto name = std::string(next());
            m_entry.registers[name] = type;
            if (take("<")) {
                std::size_t count = 0;
                MR_TRY(readCount(count));
                MR_TRY(expect(">"));
            }
        } while (take(","));
        return expect(";");
    }

    Status readInstruction()
    {
        Instruction instruction;
        instruction.line = line();
        instruction.place = m_place;
        if (take("@")) {
            instruction.guardNegated = take("!");
            instruction.guard = next();
        }
        instruction.op = next();
        while (!take(";")) {
            if (isAtEnd())
                return error("an instruction without ';'");
            MR_ASSIGN(Operand operand, readOperand());
            instruction.operands.push_back(std::move(operand));
            take(",");
        }
        m_entry.instructions.push_back(std::move(instruction));
        return {};
    }

    Result<Operand> readOperand()
    {
        if (take("["))
            return readAddress();
        Operand operand;
        if (take("{")) {
            operand.kind = OperandKind::Vector;
            while (!take("}")) {
                MR_ASSIGN(Operand part, readOperand());
                operand.parts.push_back(std::move(part));
                take(",");
            }
            return operand;
        }
        MR_TRY(readScalar(operand));
        if (!take("|"))
            return operand;
        Operand pair;
        pair.kind = OperandKind::Pair;
        pair.parts.push_back(std::move(operand));
        MR_ASSIGN(Operand second, readOperand());
        pair.parts.push_back(std::move(second));
        return pair;
    }

    Result<Operand> readAddress()
    {
        Operand address;
        address.kind = OperandKind::Address;
        if (std::isdigit(static_cast<unsigned char>(peek().front())) == 0)
            address.name = next();
        if (address.name.empty() || take("+")) {
            Operand offset;
            MR_TRY(readScalar(offset));
            address.offset = static_cast<std::int64_t>(offset.bits);
        }
        MR_TRY(expect("]"));
        return address;
    }

    Status readScalar(Operand& operand)
    {
        const bool isNegative = take("-");
        const std::string_view text = next();
        if (text == "_")
            return {};
        if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) {
            operand.kind = text.starts_with("%") || m_entry.registers.contains(std::string(text))
                               ? OperandKind::Register
                               : OperandKind::Symbol;
            operand.name = text;
            return text.empty() ? error("an operand expected") : Status();
        }
        return readNumber(text, isNegative, operand);
    }

    Status readNumber(std::string_view text, bool isNegative, Operand& operand)
    {
        constexpr std::array<std::pair<std::string_view, int>, 3> kFloats = {
            {{"0f", 4}, {"0F", 4}, {"0d", 8}}};
        int base = 10;
        std::string_view digits = text;
        operand.kind = OperandKind::Integer;
        for (const auto& [prefix, bytes] : kFloats)
            if (text.starts_with(prefix)) {
                operand.kind = OperandKind::Float;
                operand.bytes = bytes;
                base = 16;
            }
        if (text.starts_with("0x"))
            base = 16;
        if (base == 16)
            digits.remove_prefix(2);
        while (digits.ends_with("U"))
            digits.remove_suffix(1);
        const auto [end, code] =
            std::from_chars(digits.data(), digits.data() + digits.size(), operand.bits, base);
        if (code != std::errc() || end != digits.data() + digits.size())
            return error(fmt::format("'{}' is no number", text));
        if (isNegative)
            operand.bits = 0 - operand.bits;
        return {};
    }

    std::vector<Token> m_tokens;
    std::size_t m_at = 0;
    Module m_module;
    Entry m_entry;
    std::string m_place;
};

} // namespace

const Entry* Module::find(std::string_view name) const
{
    const auto found =
        std::ranges::find_if(entries, [&](const Entry& entry) { return entry.name == name; });
    return found == entries.end() ? nullptr : &*found;
}

Result<Module> readPtx(std::string_view text)
{
    return Reader(text).read();
}

} // namespace mr::ptx
