/**
 * The latest versions of a thing model, what differs between two, and the way back.
 */
import { api } from "../../../api/client.ts"
import { canWrite } from "../../../api/session.ts"
import { useQuery } from "../../../api/useQuery.ts"
import { ask } from "../../../parts/Dialog.tsx"
import { SelectField } from "../../../parts/Form.tsx"
import { loadPart } from "../../../parts/loadPart.ts"
import { modelOf } from "../../../parts/model/Model.ts"
import { Card, Empty } from "../../../parts/Page.tsx"
import { Shown } from "../../../parts/Shown.tsx"
import { Time } from "../../../parts/Small.tsx"
import { Table } from "../../../parts/Table.tsx"
import { tell } from "../../../parts/toasts.tsx"
import { useUrl } from "../../../parts/useUrl.ts"
import { useTexts } from "../../../text/text.ts"
import { Comparison } from "./Comparison.tsx"

export const Versions = ({ productKey }: { readonly productKey: string }) => {
  const { common, products: { model, versions: words } } = useTexts()
  const url = useUrl()
  const query = useQuery(async (signal) => {
    const [check, { results }] = await Promise.all([
      loadPart(() => import("./check.ts")),
      api.thingModels.listThingModelVersions({ params: { product_key: productKey }, signal })
    ])
    return { check, results }
  }, [productKey])
  return (
    <Shown query={query}>
      {({ check, results }) => {
        const [latest, before = latest] = results
        if (latest === undefined || before === undefined) return <Empty title={words.empty} />
        const find = (name: string) => results.find(({ version }) => String(version) === url.get(name))
        const from = find("from") ?? before
        const to = find("to") ?? latest
        const options = results.map(({ version }) => [String(version), String(version)] as const)
        const metadata = (document: unknown) => {
          const checked = check.check("metadata", JSON.stringify(document))
          return checked.isValid ? checked.metadata : "{}"
        }
        return (
          <div class="stack">
            <Card title={words.compare}>
              <div class="filters">
                <SelectField
                  label={words.from}
                  value={String(from.version)}
                  options={options}
                  onChange={(from) => url.set({ from })}
                />
                <SelectField
                  label={words.to}
                  value={String(to.version)}
                  options={options}
                  onChange={(to) => url.set({ to })}
                />
              </div>
              <Comparison difference={check.compare(metadata(from.thing_model), metadata(to.thing_model))} />
            </Card>
            <Table
              caption={words.caption}
              rows={results}
              keyOf={({ version }) => String(version)}
              columns={[
                { id: "version", title: words.version, kind: "tight", cell: ({ version }) => version },
                { id: "created", title: common.created, cell: ({ created_at }) => <Time at={created_at} /> },
                {
                  id: "elements",
                  title: words.elements,
                  kind: "number",
                  cell: ({ thing_model }) =>
                    Object.values(modelOf(thing_model)).reduce((sum, elements) => sum + elements.length, 0)
                },
                {
                  id: "actions",
                  title: common.actions,
                  kind: "tight",
                  cell: ({ thing_model, version }) =>
                    canWrite("thingModels") && version !== latest.version && (
                      <button
                        type="button"
                        class="button small"
                        onClick={() =>
                          ask({
                            title: words.restoreTitle(version),
                            body: words.restoreBody,
                            action: words.restore,
                            run: async () => {
                              const saved = await api.thingModels.importThingModel({
                                params: { product_key: productKey },
                                payload: { model_type: "metadata", model_data: JSON.stringify(thing_model) }
                              })
                              tell(model.savedAs(saved.version))
                              query.reload()
                            }
                          })}
                      >
                        {words.restore}
                      </button>
                    )
                }
              ]}
            />
          </div>
        )
      }}
    </Shown>
  )
}
