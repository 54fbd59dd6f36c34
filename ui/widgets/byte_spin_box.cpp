#include "widgets/byte_spin_box.h"

#include "text/units.h"

#include <QLocale>
#include <QRegularExpression>

#include <array>
#include <cmath>

namespace mr::ui {

namespace {

constexpr double kMost = 1024.0 * 1024.0; // GiB
constexpr int kDecimals = 10;             // in GiB: less than a byte

struct Unit {
    char letter;
    double gibibytes;
};
constexpr std::array kUnits = {
    Unit{'T', 1024.0}, Unit{'G', 1.0}, Unit{'M', 1.0 / 1024.0}, Unit{'K', 1.0 / 1024.0 / 1024.0}};

double perUnit(const QString& letter)
{
    for (const Unit& unit : kUnits)
        if (letter.compare(QString(QLatin1Char(unit.letter)), Qt::CaseInsensitive) == 0)
            return unit.gibibytes;
    return 1.0;
}

// A number and a unit, which may be missing or on its way. All units are powers of 1,024.
const QRegularExpression& pattern()
{
    static const QRegularExpression expression(
        QStringLiteral(
            "^\\s*([\\d.,\\s\\x{202f}\\x{00a0}']*\\d[.,]?)\\s*(?:([KMGT])(?:i?(?:B)?)?)?\\s*$"),
        QRegularExpression::CaseInsensitiveOption);
    return expression;
}

} // namespace

ByteSpinBox::ByteSpinBox(QWidget* parent)
    : QDoubleSpinBox(parent)
{
    setDecimals(kDecimals);
    setRange(0.0, kMost);
    setKeyboardTracking(false);
}

std::uint64_t ByteSpinBox::bytes() const
{
    return static_cast<std::uint64_t>(std::llround(value() * kGiB));
}

void ByteSpinBox::setBytes(std::uint64_t bytes)
{
    setValue(static_cast<double>(bytes) / kGiB);
}

QString ByteSpinBox::textFromValue(double gibibytes) const
{
    const Unit* unit = &kUnits.back();
    for (const Unit& larger : kUnits)
        if (gibibytes >= larger.gibibytes) {
            unit = &larger;
            break;
        }
    const double shown = std::round(100.0 * gibibytes / unit->gibibytes) / 100.0;
    return locale().toString(shown, 'f', QLocale::FloatingPointShortest) + QLatin1Char(' ') +
           QLatin1Char(unit->letter) + QStringLiteral("iB");
}

double ByteSpinBox::valueFromText(const QString& text) const
{
    const QRegularExpressionMatch match = pattern().match(text);
    bool isNumber = false;
    const double number = locale().toDouble(match.captured(1).trimmed(), &isNumber);
    return match.hasMatch() && isNumber ? number * perUnit(match.captured(2)) : value();
}

QValidator::State ByteSpinBox::validate(QString& text, int& /*position*/) const
{
    if (!specialValueText().isEmpty() && text == specialValueText())
        return QValidator::Acceptable;
    if (text.trimmed().isEmpty())
        return QValidator::Intermediate;
    const QRegularExpressionMatch match = pattern().match(text);
    if (!match.hasMatch())
        return QValidator::Invalid;
    bool isNumber = false;
    const double number = locale().toDouble(match.captured(1).trimmed(), &isNumber);
    if (!isNumber)
        return QValidator::Intermediate;
    return number * perUnit(match.captured(2)) <= maximum() ? QValidator::Acceptable
                                                            : QValidator::Invalid;
}

// By half a GiB, and by less where that is much.
void ByteSpinBox::stepBy(int steps)
{
    double unit = 0.5;
    while (unit > value() / 4.0 && unit > kUnits.back().gibibytes && value() > 0.0)
        unit /= 2.0;
    setSingleStep(unit);
    QDoubleSpinBox::stepBy(steps);
}

} // namespace mr::ui
