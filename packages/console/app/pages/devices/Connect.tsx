/**
 * Connects a device: chooses or creates it, and shows programs that report for it.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { useLive } from "../../api/live.ts"
import { canWrite, may } from "../../api/session.ts"
import { useQuery } from "../../api/useQuery.ts"
import { deviceHref, ProductField, useProducts } from "../../parts/Devices.tsx"
import { Form, TextField } from "../../parts/Form.tsx"
import { useModel } from "../../parts/model/Model.ts"
import { Card, Empty, Facts, Page } from "../../parts/Page.tsx"
import { Shown } from "../../parts/Shown.tsx"
import { Copied, Snippet } from "../../parts/Small.tsx"
import { useUrl } from "../../parts/useUrl.ts"
import { useTexts } from "../../text/text.ts"
import { languages, sampleOf, snippet, titles } from "./snippets.ts"

const Connect = () => {
  const { common, devices: { first }, shell } = useTexts()
  const url = useUrl()
  const products = useProducts()
  const productKey = url.get("product")
  const deviceId = url.get("device")
  return (
    <Page
      title={first.title}
      lead={first.lead}
      crumbs={[{ title: shell.pages.devices, href: "/console/devices" }]}
    >
      <Shown query={products}>
        {({ total }) =>
          total === 0 ?
            (
              <Empty
                title={first.noProductTitle}
                actions={<a class="button primary" href="/console/products">{first.toProducts}</a>}
              >
                {first.noProductBody}
              </Empty>
            ) :
            (
              <div class="stack">
                <div class="halves">
                  <Card title={first.product}>
                    <ProductField
                      label={first.product}
                      emptyTitle={common.chooseProduct}
                      fits={({ node_type }) => node_type !== "gateway-sub"}
                      products={products}
                      value={productKey}
                      onChange={(product, isTyped) => url.set({ product, device: "" }, isTyped)}
                    />
                  </Card>
                  {productKey !== "" && canWrite("devices") && (
                    <Card title={first.newDevice}>
                      <NewDevice key={productKey} productKey={productKey} onCreated={(device) => url.set({ device })} />
                    </Card>
                  )}
                </div>
                {deviceId !== "" && <Programs key={deviceId} productKey={productKey} deviceId={deviceId} />}
              </div>
            )}
      </Shown>
    </Page>
  )
}

const NewDevice = (
  { onCreated, productKey }: { readonly productKey: string; readonly onCreated: (deviceId: string) => void }
) => {
  const { common, devices } = useTexts()
  const [name, setName] = useState("")
  return (
    <Form
      submit={devices.first.create}
      onSubmit={async () => {
        const payload = name === "" ? {} : { device_name: name }
        const device = await api.devices.createDevice({ params: { product_key: productKey }, payload })
        onCreated(device.device_id)
      }}
    >
      <TextField
        label={common.deviceName}
        path="device_name"
        hint={devices.nameHint}
        value={name}
        onInput={setName}
      />
    </Form>
  )
}

const Programs = ({ deviceId, productKey }: { readonly productKey: string; readonly deviceId: string }) => {
  const { common, devices: { first } } = useTexts()
  const query = useQuery((signal) => api.devices.getDevice({ params: { device_id: deviceId }, signal }), [deviceId])
  const [hasArrived, setArrived] = useState(false)
  const [language, setLanguage] = useState<(typeof languages)[number]>("mosquitto")
  const [host, setHost] = useState(location.hostname)
  const [port, setPort] = useState("8883")
  const [authority, setAuthority] = useState(".device-cloud/tls/ca.pem")
  const { data: model } = useModel(query.data?.device_info.product_key)
  const [written, setProperties] = useState<string>()
  const properties = written ?? sampleOf(model)
  useLive(
    { product_key: productKey || undefined, device_id: deviceId, types: ["property", "event"], whileHidden: true },
    () => setArrived(true)
  )
  return (
    <Shown query={query}>
      {({ device_info: { device_name, device_secret, product_key } }) => (
        <>
          <Card title={first.triple} actions={<a class="button small" href={deviceHref(deviceId)}>{first.toDevice}</a>}>
            <Facts
              facts={[
                [common.productKey, <Copied of={common.productKey} text={product_key} />],
                [common.deviceName, <Copied of={common.deviceName} text={device_name} />],
                [
                  first.secret,
                  may("operator")
                    ? <Copied of={first.secret} text={device_secret} />
                    : first.viewerSecret
                ]
              ]}
            />
          </Card>
          <p class="notice" role="status">{hasArrived ? first.arrived : first.waiting}</p>
          <div class="grid">
            <TextField label={first.host} value={host} onInput={setHost} />
            <TextField label={first.port} value={port} inputMode="numeric" onInput={setPort} />
            <TextField label={first.ca} hint={first.caHint} value={authority} onInput={setAuthority} />
            <TextField label={first.payload} value={properties} onInput={setProperties} />
          </div>
          <div class="row" role="group" aria-label={first.title}>
            {languages.map((id) => (
              <button
                key={id}
                type="button"
                class={id === language ? "button primary" : "button"}
                aria-pressed={id === language}
                onClick={() => setLanguage(id)}
              >
                {titles[id]}
              </button>
            ))}
          </div>
          <p class="soft">{first.needs[language]}</p>
          <Snippet
            label={titles[language]}
            text={snippet(language, {
              productKey: product_key,
              deviceName: device_name,
              deviceSecret: may("operator") ? device_secret : "DEVICE_SECRET",
              host,
              port,
              authority,
              origin: location.origin,
              properties
            })}
          />
        </>
      )}
    </Shown>
  )
}

export default Connect
