// LabelledSetting: a setting on a form, and the helpers that forms of settings share.
//
// Threads    GUI.
// Ownership  Widgets belong to their parent, the editor to the setting.

#pragma once

#include "pages/settings_editors.h"

#include <functional>
#include <memory>

class QGridLayout;
class QLabel;
class QObject;

namespace mr::ui {

struct LabelledSetting {
    const SettingLook* look;
    QLabel* label;
    std::unique_ptr<SettingEditor> editor;

    static LabelledSetting make(
        const SettingLook& look, std::unique_ptr<SettingEditor> editor, QWidget* parent);
    void retranslate() const;
};

// Two fields a row, each a label above its editor.
void placeInPairs(QGridLayout* grid, QWidget* label, QWidget* editor);
// Calls `call` when the user has changed the value of an editor's widget.
void onEdited(QWidget* widget, QObject* context, const std::function<void()>& call);

} // namespace mr::ui
