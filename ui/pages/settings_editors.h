// SettingEditor: the widget of one setting. Its kind, range and default follow from the setting's
// row in <millrace/spec_fields.h>, its words from its look.
//
// Threads    GUI.
// Ownership  The widget belongs to `parent`, the editor to its maker.

#pragma once

#include "models/setting_looks.h"

#include <millrace/spec_fields.h>

#include <memory>

class QDoubleSpinBox;
class QSpinBox;
class QWidget;

namespace mr::ui {

class SettingEditor
{
public:
    // Shows the default.
    static std::unique_ptr<SettingEditor> make(
        const SpecField& field, const SettingLook& look, QWidget* parent);

    virtual ~SettingEditor() = default;

    virtual QWidget* widget() const = 0;
    virtual void read(const RunSpec& spec) = 0;
    virtual void write(RunSpec& spec) const = 0;
    virtual void retranslate() {}
    // Some defaults of a run with an adapter are others.
    virtual void setAdapter(bool /*on*/) {}
};

// Boxes that change their value when typing is done, not with each key.
QSpinBox* makeInteger(QWidget* parent, const SpecRange& range);
QDoubleSpinBox* makeNumber(QWidget* parent, const SpecRange& range, int decimals, double step);

} // namespace mr::ui
