/**
 * What a product is, and what can be done with it.
 */
import { useState } from "preact/hooks"
import { api } from "../../api/client.ts"
import { canWrite, may } from "../../api/session.ts"
import { tellFailure } from "../../parts/toasts.tsx"
import type { Product } from "../../parts/Devices.tsx"
import { ask, Counted, Dialog } from "../../parts/Dialog.tsx"
import { CheckField, Form, TextField } from "../../parts/Form.tsx"
import { DeleteButton } from "../../parts/Listing.tsx"
import { Card, Facts } from "../../parts/Page.tsx"
import { Copied, CopyButton, Time } from "../../parts/Small.tsx"
import { tell } from "../../parts/toasts.tsx"
import { useClose } from "../../parts/useClose.ts"
import { useGoTo } from "../../parts/useGoTo.ts"
import { formatNumber, useTexts } from "../../text/text.ts"
import { ProductStatus } from "./ProductList.tsx"

export const ProductOverview = ({ product, reload }: { readonly product: Product; readonly reload: () => void }) => {
  const { common, products } = useTexts()
  const goTo = useGoTo()
  const [isEditing, setEditing] = useState(false)
  const { name, product_key, product_secret, status } = product
  const params = { product_key }
  const other = status === "released" ? "developing" : "released"
  const release = () =>
    api.products.setProductStatus({ params, payload: { status: other } }).then(reload, tellFailure)
  return (
    <Card
      title={<ProductStatus status={status} />}
      actions={
        <>
          <a class="button" href={`/console/devices?product=${product_key}`}>{products.devices}</a>
          <a class="button" href={`/console/firmware?product=${product_key}`}>{products.firmware}</a>
          {canWrite("devices") && (
            <a class="button" href={`/console/devices/connect?product=${product_key}`}>{products.connect}</a>
          )}
          {canWrite("products") && (
            <>
              <button type="button" class="button" onClick={() => setEditing(true)}>{common.edit}</button>
              <button type="button" class="button" onClick={() => void release()}>
                {status === "released" ? products.unrelease : products.release}
              </button>
              <DeleteButton
                title={products.removeTitle(name)}
                body={
                  <Counted
                    read={async (signal) => {
                      const query = { product_key, page_size: 1 }
                      const [devices, firmwares] = await Promise.all([
                        api.devices.listDevices({ query, signal }),
                        api.ota.listFirmwares({ query, signal })
                      ])
                      return [devices.total, firmwares.total].map((total) => formatNumber(total))
                    }}
                  >
                    {([devices = "", firmwares = ""]) => products.removeBody(devices, firmwares)}
                  </Counted>
                }
                typed={name}
                remove={() => api.products.deleteProduct({ params })}
                onDeleted={() => goTo("/console/products")}
              />
            </>
          )}
        </>
      }
    >
      <Facts
        facts={[
          [common.description, product.description || undefined],
          [products.key, <Copied of={products.key} text={product_key} />],
          [products.secret, <Secret secret={product_secret} productKey={product_key} reload={reload} />],
          [products.nodeType, products.nodeTypes[product.node_type]],
          [products.networkType, products.networks[product.network_type] ?? (product.network_type || undefined)],
          [products.protocolType, products.networks[product.protocol_type] ?? (product.protocol_type || undefined)],
          [products.validateType, products.validateTypes[product.validate_type]],
          [products.dataFormat, products.dataFormats[product.data_format]],
          [products.authType, products.authTypes[product.auth_type]],
          [products.signature, product.uplink_signature],
          [products.register, product.dynamic_register ? common.yes : common.no],
          [common.created, <Time at={product.created_at} />],
          [common.changed, <Time at={product.updated_at} />]
        ]}
      />
      {isEditing && <EditProduct product={product} onClose={() => setEditing(false)} onSaved={reload} />}
    </Card>
  )
}

const Secret = (
  { productKey, reload, secret }: {
    readonly secret: string
    readonly productKey: string
    readonly reload: () => void
  }
) => {
  const { products } = useTexts()
  if (!may("operator")) return <span class="soft">{products.secretHidden}</span>
  return (
    <span class="row">
      <code class="wrap">{secret}</code>
      <CopyButton text={secret} of={products.secret} />
      {canWrite("products") && (
        <button
          type="button"
          class="button small"
          onClick={() =>
            ask({
              title: products.rotateTitle,
              body: products.rotateBody,
              action: products.rotate,
              run: async () => {
                await api.products.rotateProductSecret({ params: { product_key: productKey }, payload: {} })
                reload()
              }
            })}
        >
          {products.rotate}
        </button>
      )}
    </span>
  )
}

const EditProduct = (
  { onClose, onSaved, product }: {
    readonly product: Product
    readonly onClose: () => void
    readonly onSaved: () => void
  }
) => {
  const { common, products } = useTexts()
  const close = useClose(onClose)
  const [before] = useState(product)
  const [name, setName] = useState(product.name)
  const [description, setDescription] = useState(product.description)
  const [photo, setPhoto] = useState(product.photo_url)
  const [register, setRegister] = useState(product.dynamic_register)
  return (
    <Dialog title={common.edit} onClose={onClose}>
      <Form
        submit={common.save}
        onCancel={onClose}
        onSubmit={async () => {
          const params = { product_key: product.product_key }
          // Somebody else may have changed the rest meanwhile.
          const { product_info: stored } = await api.products.getProduct({ params })
          await api.products.updateProduct({
            params,
            payload: {
              name: name === before.name ? stored.name : name,
              description: description === before.description ? stored.description : description,
              photo_url: photo === before.photo_url ? stored.photo_url : photo,
              dynamic_register: register === before.dynamic_register ? stored.dynamic_register : register
            }
          })
          tell(common.saved)
          close()
          onSaved()
        }}
      >
        <TextField label={common.name} path="name" required value={name} onInput={setName} />
        <TextField label={common.description} path="description" value={description} onInput={setDescription} />
        <TextField label={products.photo} path="photo_url" value={photo} onInput={setPhoto} />
        <CheckField label={products.register} checked={register} onChange={setRegister} />
      </Form>
    </Dialog>
  )
}
