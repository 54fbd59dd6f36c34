// The colours of compute and the six causes can be told apart, also by colour-blind eyes.

#include "support/test_room.h"
#include "text/cause_colors.h"

#include <QTest>

#include <array>
#include <cmath>

namespace mr::test::tst_cause_colors {

namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

// Machado, Oliveira, Fernandes 2009, severity 1.0, linear RGB; the first is normal vision.
constexpr std::array<Matrix, 4> kVisions = {{
    {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
    {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216},
        {-0.003882, -0.048116, 1.051998}}},
    {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413},
        {-0.011820, 0.042940, 0.968881}}},
    {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602},
        {0.004733, 0.691367, 0.303900}}},
}};

double linear(double v)
{
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}

double labCurve(double t)
{
    return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116.0;
}

Vector seen(const QColor& color, const Matrix& vision)
{
    const Vector rgb = {linear(color.redF()), linear(color.greenF()), linear(color.blueF())};
    Vector out{};
    for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t j = 0; j < 3; ++j)
            out[i] += vision[i][j] * rgb[j];
        out[i] = std::clamp(out[i], 0.0, 1.0);
    }
    const double x = labCurve((0.4124 * out[0] + 0.3576 * out[1] + 0.1805 * out[2]) / 0.9505);
    const double y = labCurve(0.2126 * out[0] + 0.7152 * out[1] + 0.0722 * out[2]);
    const double z = labCurve((0.0193 * out[0] + 0.1192 * out[1] + 0.9505 * out[2]) / 1.089);
    return {116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)};
}

} // namespace

class TestCauseColors : public QObject
{
    Q_OBJECT

private slots:

    void partsAreApartForEveryVision_data()
    {
        QTest::addColumn<bool>("dark");
        QTest::newRow("light") << false;
        QTest::newRow("dark") << true;
    }

    void partsAreApartForEveryVision()
    {
        QFETCH(const bool, dark);
        const QPalette palette = mr::ui::themePalette(dark);
        // CIE76: about 2.3 is just noticeable side by side; small marks need several times that.
        constexpr double kApart = 15.0;

        for (const Matrix& vision : kVisions) {
            for (std::size_t a = 0; a < 1 + mr::kStallCauses; ++a) {
                for (std::size_t b = 0; b < a; ++b) {
                    const Vector left = seen(mr::ui::partColor(palette, a), vision);
                    const Vector right = seen(mr::ui::partColor(palette, b), vision);
                    const double distance =
                        std::hypot(left[0] - right[0], left[1] - right[1], left[2] - right[2]);
                    QVERIFY2(distance > kApart,
                        qPrintable(
                            QStringLiteral("parts %1 and %2: %3").arg(a).arg(b).arg(distance)));
                }
            }
        }
    }
};

MR_TEST(TestCauseColors)

} // namespace mr::test::tst_cause_colors

#include "tst_cause_colors.moc"
