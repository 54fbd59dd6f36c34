// SettingLook: a setting as the form of the New run page shows it. Its range, default and option
// stand in <millrace/spec_fields.h>.
//
// Threads  Pure.

#pragma once

#include <QCoreApplication>
#include <QString>

#include <span>
#include <string_view>

namespace mr::ui {

// A word of the setting and how people read it.
struct ChoiceLook {
    const char* word;
    const char* text; // for SettingWords::text()
};

inline constexpr int kAnyDigits = -1; // typed as text, "2e-5"

// Texts are untranslated; SettingWords::text() translates them.
struct SettingLook {
    const char* key; // SpecField::key
    const char* name;
    const char* help;
    bool isAdvanced = false;       // folded away
    const char* special = nullptr; // in place of the least value
    const char* unit = nullptr;    // behind the value, with a plural
    const char* caption = nullptr; // text of a check box
    int decimals = 2;
    double step = 1.0;
    std::span<const ChoiceLook> choices = {}; // in the order of the box
    const char* adapterSpecial = nullptr;     // instead of `special` in a run with an adapter
};

struct SettingWords {
    Q_DECLARE_TR_FUNCTIONS(mr::ui::SettingsForm)

public:
    // In the order of the form: simple ones first.
    static std::span<const SettingLook> looks();
    // An adapter's, in the order of its form.
    static std::span<const SettingLook> adapterLooks();
    // The layers of a run that trains some.
    static const SettingLook& layersLook();
    // The turns of a run that trains one block at a time.
    static const SettingLook& turnsLook();
    // A text of a look in the language of the window; `n` chooses the plural.
    static QString text(const char* text, int n = -1);
};

// Whether the New run page has an editor for the setting, in the form or in another section.
bool hasEditor(std::string_view key);

} // namespace mr::ui
