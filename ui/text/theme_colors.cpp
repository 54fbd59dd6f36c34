#include "text/theme_colors.h"

#include <algorithm>
#include <cmath>

namespace mr::ui {

namespace {

QColor rgb(QRgb value)
{
    return {value};
}

ThemeColors lightColors()
{
    ThemeColors c;
    c.card = rgb(0xffffff);
    c.border = rgb(0xd5dade);
    c.frame = rgb(0x7f8a94);
    c.grid = rgb(0xe6eaed);
    c.muted = rgb(0x56616b);
    c.accent = rgb(0x0b6e99);
    c.good = rgb(0x1a7f37);
    c.warning = rgb(0x8a5a00);
    c.error = rgb(0xb3261e);
    c.trainedFill = rgb(0xcdeed6);
    c.trainedText = rgb(0x0c4a1f);
    c.maskedFill = rgb(0xe6e9ec);
    c.maskedText = rgb(0x4b555e);
    c.series = {rgb(0x0b6e99), rgb(0xc8741f), rgb(0x2e9e5b), rgb(0x8e5bb5), rgb(0xc94f6d),
        rgb(0x6b7f8c), rgb(0xa58a14), rgb(0x26989a)};
    // Also apart for colour-blind eyes: see tests/ui/charts/tst_cause_colors.cpp.
    c.stall = {
        rgb(0xd57e02), rgb(0x2c8cf6), rgb(0x9f3651), rgb(0x2c2a9c), rgb(0x02a549), rgb(0x838e91)};
    c.compute = rgb(0x0b6e99);
    return c;
}

ThemeColors darkColors()
{
    ThemeColors c;
    c.card = rgb(0x23292e);
    c.border = rgb(0x3c464e);
    c.frame = rgb(0x78848e);
    c.grid = rgb(0x323a41);
    c.muted = rgb(0xa3b0ba);
    c.accent = rgb(0x5cb8e0);
    c.good = rgb(0x6fd08c);
    c.warning = rgb(0xe8b04f);
    c.error = rgb(0xff8a80);
    c.trainedFill = rgb(0x1f4d30);
    c.trainedText = rgb(0xc9f3d5);
    c.maskedFill = rgb(0x353e45);
    c.maskedText = rgb(0xb4bfc8);
    c.series = {rgb(0x5cb8e0), rgb(0xf0a35a), rgb(0x6fd08c), rgb(0xc39be0), rgb(0xf08aa4),
        rgb(0x9fb0bc), rgb(0xdcc654), rgb(0x5fd0ca)};
    c.stall = {
        rgb(0xf0a030), rgb(0x546dc3), rgb(0xe05a7d), rgb(0x865df5), rgb(0x5eff93), rgb(0xd5dde3)};
    c.compute = rgb(0x5cb8e0);
    return c;
}

void setDisabled(QPalette& palette, const QColor& text)
{
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText,
             QPalette::HighlightedText, QPalette::ToolTipText})
        palette.setColor(QPalette::Disabled, role, text);
}

QPalette lightPalette()
{
    QPalette p(rgb(0xe9edf0), rgb(0xf3f5f7));
    p.setColor(QPalette::Window, rgb(0xf3f5f7));
    p.setColor(QPalette::WindowText, rgb(0x1b2329));
    p.setColor(QPalette::Base, rgb(0xffffff));
    p.setColor(QPalette::AlternateBase, rgb(0xf3f6f8));
    p.setColor(QPalette::Text, rgb(0x1b2329));
    p.setColor(QPalette::Button, rgb(0xebeff2));
    p.setColor(QPalette::ButtonText, rgb(0x1b2329));
    p.setColor(QPalette::BrightText, rgb(0xffffff));
    p.setColor(QPalette::ToolTipBase, rgb(0x22303a));
    p.setColor(QPalette::ToolTipText, rgb(0xf2f6f8));
    p.setColor(QPalette::PlaceholderText, rgb(0x6b7680));
    p.setColor(QPalette::Highlight, rgb(0x0b6e99));
    p.setColor(QPalette::HighlightedText, rgb(0xffffff));
    p.setColor(QPalette::Link, rgb(0x0b6e99));
    p.setColor(QPalette::LinkVisited, rgb(0x6d4a8f));
    p.setColor(QPalette::Disabled, QPalette::Highlight, rgb(0xc3ccd2));
    setDisabled(p, rgb(0x8a949c));
    return p;
}

QPalette darkPalette()
{
    QPalette p(rgb(0x2b3238), rgb(0x1b2024));
    p.setColor(QPalette::Window, rgb(0x1b2024));
    p.setColor(QPalette::WindowText, rgb(0xe8edf1));
    p.setColor(QPalette::Base, rgb(0x14181b));
    p.setColor(QPalette::AlternateBase, rgb(0x1d2327));
    p.setColor(QPalette::Text, rgb(0xe8edf1));
    p.setColor(QPalette::Button, rgb(0x323a41));
    p.setColor(QPalette::ButtonText, rgb(0xe8edf1));
    p.setColor(QPalette::BrightText, rgb(0xffffff));
    p.setColor(QPalette::ToolTipBase, rgb(0x3a454d));
    p.setColor(QPalette::ToolTipText, rgb(0xf2f6f8));
    p.setColor(QPalette::PlaceholderText, rgb(0x8d99a3));
    p.setColor(QPalette::Highlight, rgb(0x2c7ca2));
    p.setColor(QPalette::HighlightedText, rgb(0xffffff));
    p.setColor(QPalette::Link, rgb(0x5cb8e0));
    p.setColor(QPalette::LinkVisited, rgb(0xc39be0));
    p.setColor(QPalette::Light, rgb(0x424c54));
    p.setColor(QPalette::Midlight, rgb(0x3a434a));
    p.setColor(QPalette::Mid, rgb(0x262c31));
    p.setColor(QPalette::Dark, rgb(0x101316));
    p.setColor(QPalette::Shadow, rgb(0x000000));
    p.setColor(QPalette::Disabled, QPalette::Highlight, rgb(0x46525b));
    setDisabled(p, rgb(0x75808a));
    return p;
}

double luminance(const QColor& color)
{
    const auto linear = [](double v) {
        return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) +
           0.0722 * linear(color.blueF());
}

} // namespace

bool isDark(const QPalette& palette)
{
    return palette.color(QPalette::Base).lightness() < 128;
}

const ThemeColors& themeColors(const QPalette& palette)
{
    static const ThemeColors light = lightColors();
    static const ThemeColors dark = darkColors();
    return isDark(palette) ? dark : light;
}

QPalette themePalette(bool dark)
{
    return dark ? darkPalette() : lightPalette();
}

double contrastRatio(const QColor& a, const QColor& b)
{
    const double la = luminance(a);
    const double lb = luminance(b);
    return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

} // namespace mr::ui
