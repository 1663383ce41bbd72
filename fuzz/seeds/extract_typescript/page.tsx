import React, { type FC, useState } from 'react';
export const Page: FC<{ items: Item[] }> = ({ items, ...rest }) => {
  const [open, setOpen] = useState<boolean>(false);
  return <List<Item> {...rest} of={items} key="x" render={(item: Item) => <Row.Cell onClick={() => setOpen(!open)}>{item.name}</Row.Cell>} aria-label='a "b"'>
    {open ? <></> : null} text &nbsp; {/* nothing */} <svg:path d="M0" />
  </List>;
};
export default function <T,>(props: Props<T>) { return <Page {...(props as any)} />; }
