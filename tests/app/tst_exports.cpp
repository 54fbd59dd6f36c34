// Exports by order: the types that a form lists are those that its writer knows.

#include "app/exports.h"
#include "support/test_room.h"

#include <QTest>

namespace mr::test::tst_exports {

class TestExports : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void listedTypesAreKnown();
    void otherTypesAreRefusedWithTheirNames();

private:
    static std::string refusal(ExportForm form, std::string_view type)
    {
        ExportOrder order;
        order.model = "/nowhere/at/all";
        order.out = "/nowhere/else";
        order.form = form;
        order.type = type;
        return app::writeExport(order).status().message();
    }
};

void TestExports::listedTypesAreKnown()
{
    int types = 0;
    for (const ExportFormInfo& form : exportForms())
        for (const std::string_view type : form.types) {
            const std::string message = refusal(form.form, type);
            QVERIFY2(message.find("/nowhere/at/all") != std::string::npos, message.c_str());
            ++types;
        }
    QVERIFY(types > 20);
}

void TestExports::otherTypesAreRefusedWithTheirNames()
{
    const std::string folder = refusal(ExportForm::Safetensors, "q8_0");
    QVERIFY2(folder.find("has no type q8_0; use auto, bf16, fp16, fp32") != std::string::npos,
        folder.c_str());
    const std::string gguf = refusal(ExportForm::Gguf, "fp32");
    QVERIFY2(gguf.find("has no type fp32; use auto, q8_0") != std::string::npos, gguf.c_str());
    const std::string adapter = refusal(ExportForm::GgufAdapter, "f16");
    QVERIFY2(adapter.find("leave --precision out") != std::string::npos, adapter.c_str());
}

MR_TEST(TestExports)

} // namespace mr::test::tst_exports

#include "tst_exports.moc"
