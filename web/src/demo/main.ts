// The panel of a demonstration, beside the application and not a part of it: the shell asks for it, where it says so.
import { mount } from 'svelte';
import Panel from './Panel.svelte';

mount(Panel, { target: document.body });
