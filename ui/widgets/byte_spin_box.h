// ByteSpinBox: an amount of memory, shown and typed with its unit: "6.16 MiB", "12 GiB".
//
// Why not a number of GiB: a budget for a small model is a few thousandths of one. A number that is
// typed without a unit is of GiB. 0 is the special value.
//
// Threads  GUI.
// Units    value() is GiB, bytes() bytes.

#pragma once

#include <QDoubleSpinBox>

#include <cstdint>

namespace mr::ui {

class ByteSpinBox final : public QDoubleSpinBox
{
    Q_OBJECT

public:
    explicit ByteSpinBox(QWidget* parent = nullptr);

    std::uint64_t bytes() const;
    void setBytes(std::uint64_t bytes);

    QString textFromValue(double gibibytes) const override;
    double valueFromText(const QString& text) const override;
    QValidator::State validate(QString& text, int& position) const override;
    void stepBy(int steps) override;
};

} // namespace mr::ui
